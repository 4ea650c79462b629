/** What speaks AMQP: everything of the adapter that needs a library. Imported together when a namespace is first used. */
export { openBudget } from './budget.ts';
export { readEndpoint } from './credentials.ts';
export { openDeadLetterQueue } from './deadLetterQueue.ts';
export { shareNamespace } from './namespace.ts';
export { openReplayTarget } from './target.ts';
export { lookForWaiting } from './waiting.ts';

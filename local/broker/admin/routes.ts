/** What the path of an administration request names. */

export type Target =
  | { readonly kind: 'namespace' }
  | { readonly kind: 'queues' | 'topics' }
  /** A queue or a topic: the path does not say which. */
  | { readonly kind: 'entity'; readonly path: string }
  | { readonly kind: 'subscriptions'; readonly topic: string }
  | { readonly kind: 'subscription'; readonly topic: string; readonly name: string }
  | { readonly kind: 'rules'; readonly topic: string; readonly subscription: string }
  | { readonly kind: 'rule'; readonly topic: string; readonly subscription: string; readonly name: string };

/** Reads the path of a URL, already decoded, without its first slash. Names of topics may hold slashes themselves. */
export function targetOf(path: string): Target | undefined {
  const text = path.replace(/^\/+|\/+$/g, '');
  if (text === '') return undefined;
  if (/^\$namespaceinfo$/i.test(text)) return { kind: 'namespace' };
  const list = /^\$resources\/(queues|topics)$/i.exec(text)?.[1];
  if (list) return { kind: list.toLowerCase() === 'queues' ? 'queues' : 'topics' };
  if (text.startsWith('$')) return undefined;
  const [, topic, subscription, rules, rule] =
    /^(.+)\/subscriptions(?:\/([^/]+)(\/rules(?:\/([^/]+))?)?)?$/i.exec(text) ?? [];
  if (topic === undefined) return { kind: 'entity', path: text };
  if (subscription === undefined) return { kind: 'subscriptions', topic };
  if (rules === undefined) return { kind: 'subscription', topic, name: subscription };
  return rule === undefined
    ? { kind: 'rules', topic, subscription }
    : { kind: 'rule', topic, subscription, name: rule };
}

/**
 * Faults on demand. A test adds a rule; the broker asks whether one applies when a send comes in, when a message is
 * settled (over the link or over `$management`), when any `$management` operation comes in, when messages are about to
 * be delivered, and at every frame.
 */
import { BrokerError } from './errors.ts';

/** What goes wrong, where, and how often. */
export interface FaultRule {
  readonly at: 'send' | 'settle' | 'manage' | 'deliver' | 'frame';
  /** Only at this entity path (case does not matter); without it, at every entity. Frames belong to none. */
  readonly entity?: string;
  /**
   * For `manage` the operation, with or without its `com.microsoft:` prefix. For `settle` one of `complete`,
   * `abandon`, `defer`, `dead-letter`.
   */
  readonly operation?: string;
  /** Only settlements that came this way. */
  readonly via?: 'link' | 'management';
  /** How many matching events pass unharmed first. Default 0. */
  readonly skip?: number;
  /** How many events are hit after that. Default 1. */
  readonly times?: number;
  /**
   * `refuse`: nothing is done and the client gets the error; `server-busy`: the same in the words of a service that
   * throttles. `lose-answer`: it is done and the client never hears of it. `drop-connection`: the socket is destroyed,
   * see `when`; at a frame, before it is read. `hold`: nothing happens until `release()`. `delay`: nothing happens for
   * `ms`. `lose-lock`: the locks it is about are lost first, as by a failover. At a delivery only `hold`, `delay` and
   * `drop-connection` have an effect, at a frame only the last.
   */
  readonly do: 'refuse' | 'server-busy' | 'lose-answer' | 'drop-connection' | 'hold' | 'delay' | 'lose-lock';
  /** For `drop-connection`: before or after it was done. Default `after`. */
  readonly when?: 'before' | 'after';
  /** For `delay`, in real milliseconds. Default 100. */
  readonly ms?: number;
  /** For `refuse`. Default `amqp:internal-error`. */
  readonly condition?: string;
  readonly description?: string;
}

/** What is done about one event. */
export type FaultEffect = Pick<FaultRule, 'do' | 'when' | 'ms' | 'condition' | 'description'>;

/** A rule at work. */
export interface FaultHandle {
  /** How many events it has hit. */
  readonly hits: number;
  /** Takes the rule away; what it holds is let go. */
  remove(): void;
  /** Lets go what a `hold` holds now; later hits are held again. */
  release(): void;
}

/** Something that happens in the broker and may be hit. */
export interface FaultEvent {
  readonly at: FaultRule['at'];
  readonly entity: string;
  readonly operation?: string;
  readonly via?: 'link' | 'management';
}

/** The parts of handling a request, in the order in which a fault may interfere. */
export interface Step<T> {
  /** Does the work; a thrown error is the answer. */
  act(): T;
  succeed(result: T): void;
  fail(error: BrokerError): void;
  /** Called instead of an answer when the answer is lost. */
  forget(): void;
  drop(): void;
  /** Lets the locks be lost that this is about. */
  loseLocks?(): void;
  /** For errors thrown by `act`. */
  toError(caught: unknown): BrokerError;
}

/** Decides about events that no rule hits. */
export interface FaultSource {
  decide(events: readonly FaultEvent[]): FaultEffect | undefined;
}

const DEFAULT_DELAY = 100;

class ActiveFault implements FaultHandle {
  readonly rule: FaultRule;
  hits = 0;
  #seen = 0;
  #held: (() => void)[] = [];
  readonly #detach: (fault: ActiveFault) => void;

  constructor(rule: FaultRule, detach: (fault: ActiveFault) => void) {
    this.rule = rule;
    this.#detach = detach;
  }

  matches(event: FaultEvent): boolean {
    const { at, entity, operation, via } = this.rule;
    if (at !== event.at || (via && via !== event.via)) return false;
    if (entity !== undefined && entity.toLowerCase() !== event.entity.toLowerCase()) return false;
    return operation === undefined || plain(operation) === plain(event.operation ?? '');
  }

  /** Counts a matching event and says whether it is hit. */
  strikes(): boolean {
    const seen = this.#seen++ - (this.rule.skip ?? 0);
    if (seen < 0 || seen >= (this.rule.times ?? 1)) return false;
    this.hits++;
    return true;
  }

  hold(then: () => void): void {
    this.#held.push(then);
  }

  release(): void {
    for (const then of this.#held.splice(0)) then();
  }

  remove(): void {
    this.#detach(this);
    this.release();
  }
}

function plain(operation: string): string {
  return operation.replace(/^com\.microsoft:/, '');
}

/** All rules of a broker. Of several that match, the oldest that still strikes wins. */
export class Faults {
  #active: ActiveFault[] = [];
  readonly #delayed = new Map<NodeJS.Timeout, () => void>();
  readonly #source: FaultSource | undefined;

  /** `source` decides about what no rule hits. */
  constructor(source?: FaultSource) {
    this.#source = source;
  }

  /** Whether nothing can go wrong now. */
  get quiet(): boolean {
    return this.#active.length === 0 && !this.#source;
  }

  add(rule: FaultRule): FaultHandle {
    const fault = new ActiveFault(rule, (gone) => {
      this.#active = this.#active.filter((other) => other !== gone);
    });
    this.#active.push(fault);
    return fault;
  }

  /** Stops all deliveries of an entity until the handle is released or removed. */
  pause(entity: string): FaultHandle {
    return this.add({ at: 'deliver', entity, do: 'hold', times: Number.POSITIVE_INFINITY });
  }

  /** Takes all rules away and lets go what is held or delayed. */
  clear(): void {
    for (const fault of [...this.#active]) fault.remove();
    for (const [timer, then] of this.#delayed) {
      clearTimeout(timer);
      then();
    }
    this.#delayed.clear();
  }

  /** Runs a step that is all the given events at once, under the fault that hits one of them if any does. */
  perform<T>(events: readonly FaultEvent[], step: Step<T>): void {
    const fault = this.#active.find((candidate) => events.some((e) => candidate.matches(e)) && candidate.strikes());
    const effect = fault?.rule ?? this.#source?.decide(events);
    switch (effect?.do) {
      case undefined:
        run(step);
        return;
      case 'refuse':
      case 'server-busy':
        step.fail(refusal(effect));
        return;
      case 'lose-answer':
        run({ ...step, act: () => step.act(), succeed: () => step.forget() });
        return;
      case 'drop-connection':
        if (effect.when === 'before') step.drop();
        else run({ ...step, act: () => step.act(), succeed: () => step.drop() });
        return;
      case 'lose-lock':
        step.loseLocks?.();
        run(step);
        return;
      case 'delay':
        this.#delay(effect.ms ?? DEFAULT_DELAY, () => runLater(step));
        return;
      case 'hold':
        fault?.hold(() => runLater(step));
        return;
    }
  }

  #delay(ms: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#delayed.delete(timer);
      then();
    }, ms);
    this.#delayed.set(timer, then);
  }
}

function refusal(effect: FaultEffect): BrokerError {
  if (effect.do === 'server-busy') {
    const description = effect.description ?? 'The request was throttled on demand. Wait 2 seconds and try again.';
    return new BrokerError('com.microsoft:server-busy', description);
  }
  const condition = effect.condition ?? 'amqp:internal-error';
  return new BrokerError(condition, effect.description ?? `Refused on demand with ${condition}.`);
}

function run<T>(step: Step<T>): void {
  let result: T;
  try {
    result = step.act();
  } catch (caught) {
    step.fail(step.toError(caught));
    return;
  }
  step.succeed(result);
}

/** Out of its turn nobody catches what a step throws: its connection may be gone, and is given up then. */
function runLater<T>(step: Step<T>): void {
  try {
    run(step);
  } catch {
    step.drop();
  }
}

/**
 * Faults on demand. A test adds a rule; the broker asks at three places whether one applies: when a send comes in,
 * when a message is settled (over the link or over `$management`), and when any `$management` operation comes in.
 */
import { BrokerError } from './errors.ts';

/** What goes wrong, where, and how often. */
export interface FaultRule {
  readonly at: 'send' | 'settle' | 'manage';
  /** Only at this entity path (case does not matter); without it, at every entity. */
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
   * `refuse`: nothing is done and the client gets the error. `lose-answer`: it is done and the client never hears of
   * it. `drop-connection`: the socket is destroyed, see `when`. `hold`: nothing happens until `release()`.
   */
  readonly do: 'refuse' | 'lose-answer' | 'drop-connection' | 'hold';
  /** For `drop-connection`: before or after it was done. Default `after`. */
  readonly when?: 'before' | 'after';
  /** For `refuse`. Default `amqp:internal-error`. */
  readonly condition?: string;
  readonly description?: string;
}

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
  /** For errors thrown by `act`. */
  toError(caught: unknown): BrokerError;
}

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

  add(rule: FaultRule): FaultHandle {
    const fault = new ActiveFault(rule, (gone) => {
      this.#active = this.#active.filter((other) => other !== gone);
    });
    this.#active.push(fault);
    return fault;
  }

  /** Takes all rules away and lets go what they hold. */
  clear(): void {
    for (const fault of [...this.#active]) fault.remove();
  }

  /** Runs a step that is all the given events at once, under the fault that hits one of them if any does. */
  perform<T>(events: readonly FaultEvent[], step: Step<T>): void {
    const fault = this.#active.find((candidate) => events.some((e) => candidate.matches(e)) && candidate.strikes());
    if (!fault) {
      run(step);
      return;
    }
    const { rule } = fault;
    switch (rule.do) {
      case 'refuse': {
        const condition = rule.condition ?? 'amqp:internal-error';
        step.fail(new BrokerError(condition, rule.description ?? `Refused on demand with ${condition}.`));
        return;
      }
      case 'lose-answer':
        run({ ...step, act: () => step.act(), succeed: () => step.forget() });
        return;
      case 'drop-connection':
        if (rule.when === 'before') step.drop();
        else run({ ...step, act: () => step.act(), succeed: () => step.drop() });
        return;
      case 'hold':
        fault.hold(() => run(step));
        return;
    }
  }
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

import type { Dialect, Evidence, Mechanism } from '../evidence.ts';
import { findException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import { isExceptionName, messageAt } from '../heads.ts';
import { causeBehind, isSameType, type Printed } from '../printed.ts';
import type { Sight } from '../sight.ts';
import { clean, countOf, LIMIT, present } from '../text.ts';

/**
 * Reason codes that Service Bus writes itself, compared without regard to case, outer blanks or a dot at the end
 * (documented in "Overview of Service Bus dead-letter queues"; the session reason is seen in two spellings).
 */
const SYSTEM_REASONS: Readonly<Record<string, Mechanism>> = {
  maxdeliverycountexceeded: 'delivery-limit',
  ttlexpiredexception: 'expired',
  headersizeexceeded: 'header-size',
  'session id is null': 'session-missing',
  maxtransferhopcountexceeded: 'hop-count',
};

/** Exceptions of rules: with dead-lettering on filter errors on, the reason is their name and the description their message. */
const FILTER_ERRORS: readonly string[] = ['filterexception', 'ruleactionexception'];

/**
 * Service Bus itself: the reason and description that the broker or the consumer wrote when it dead-lettered.
 * Microsoft recommends putting the exception's type in the reason, so a reason that looks like one is read as one; and many
 * consumers put the printed exception into the description.
 */
export const serviceBus: Dialect = {
  name: 'service-bus',
  layer: 'broker',
  read({ letter }: Sight): Evidence | undefined {
    const reason = clean(letter.reason, LIMIT.reason);
    const description = clean(letter.description, LIMIT.reason);
    if (reason === undefined && description === undefined) return undefined;
    const mechanism = mechanismOf(reason);
    const own = mechanism === 'dead-lettered' || mechanism === 'filter-error' || mechanism === undefined;
    return {
      ...present({ reason, description, mechanism }),
      ...(own ? exceptionOf(reason, description) : attemptsOf(mechanism, description)),
    };
  },
};

function mechanismOf(reason: string | undefined): Mechanism | undefined {
  if (reason === undefined) return undefined;
  const key = reason.replace(/\.$/, '').toLowerCase();
  if (Object.hasOwn(SYSTEM_REASONS, key)) return SYSTEM_REASONS[key];
  return FILTER_ERRORS.includes(key.slice(key.lastIndexOf('.') + 1)) ? 'filter-error' : 'dead-lettered';
}

function exceptionOf(reason: string | undefined, description: string | undefined): Evidence {
  const printed = findException(description);
  const frame = ownFrame(description);
  if (reason !== undefined && isExceptionName(reason)) {
    const isSame = printed.exceptionType === undefined || isSameType(printed.exceptionType, reason);
    const isTold = isSame && printed.exceptionMessage !== undefined;
    return present({
      exceptionType: reason,
      exceptionMessage: isTold || description === undefined ? printed.exceptionMessage : messageAt(description, 0),
      ...causeBehind(reason, printed),
      frame,
    });
  }
  // Some write all they know into the reason. A word such as `Error: no` is no exception there.
  const told =
    printed.exceptionType === undefined && printed.exceptionMessage === undefined ? inReason(reason) : printed;
  return present({ ...told, frame: frame ?? ownFrame(reason) });
}

function inReason(reason: string | undefined): Printed {
  const found = findException(reason);
  return found.exceptionType === undefined || /^(?:Error|Exception)$/.test(found.exceptionType) ? {} : found;
}

/** The broker writes "Message could not be consumed after 10 delivery attempts." */
function attemptsOf(mechanism: Mechanism, description: string | undefined): Evidence {
  if (mechanism !== 'delivery-limit' || description === undefined) return {};
  return present({ attempts: countOf(/\bafter (\d{1,9}) delivery attempts?\b/i.exec(description)?.[1]) });
}

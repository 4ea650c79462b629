import type { Letter } from '../../letter.ts';
import type { Dialect, Evidence } from '../evidence.ts';

/**
 * Service Bus itself: the reason and description that the broker or the consumer wrote when it dead-lettered.
 * Microsoft recommends putting the exception's type in the reason, so a reason that looks like one is read as one.
 */
export const serviceBus: Dialect = {
  name: 'service-bus',
  read(letter: Letter): Evidence | undefined {
    const reason = text(letter.reason);
    const description = text(letter.description);
    const messageType = text(letter.subject);
    if (reason === undefined && description === undefined) return undefined;
    return {
      ...(reason !== undefined && { reason }),
      ...(description !== undefined && { description }),
      ...(messageType !== undefined && { messageType }),
      ...(reason !== undefined && looksLikeException(reason) && { exceptionType: reason }),
    };
  },
};

function text(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed ? trimmed : undefined;
}

/** `TTLExpiredException` is the broker's own reason code, not an exception of a consumer. */
function looksLikeException(reason: string): boolean {
  return /^[A-Za-z_][\w.+$\\]{0,250}(?:Exception|Error|Fault)$/.test(reason) && !/^TTLExpiredException$/i.test(reason);
}

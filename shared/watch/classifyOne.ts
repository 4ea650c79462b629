import type { TriggerSight } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { errorText } from '../errors.ts';
import { parseSequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { recordLetters } from './record.ts';
import { reopen } from './reopen.ts';

/**
 * Classifies the letter that the Service Bus trigger holds: reads it by its exact number, records it, sets it aside.
 *
 * Never throws. When the broker or the store fails, the letter is left locked and unsettled: nothing is lost, and the
 * lock's expiry is the back-off. (Throwing would make the host abandon it, and a DLQ redelivers at once, for ever.)
 */
export async function classifyOne(office: Office, source: Source, sight: TriggerSight): Promise<void> {
  try {
    const number = Number.isSafeInteger(sight.sequenceNumber)
      ? parseSequenceNumber(String(sight.sequenceNumber))
      : undefined;
    if (number === undefined) {
      office.log(`classify ${source.name}: the sequence number is rounded; left to the collecting pass`);
      return;
    }
    const queue = await office.broker.open(source);
    try {
      const read = await queue.peekOne(number);
      if (read === undefined || read.letter.messageId !== sight.messageId) {
        office.log(
          `classify ${source.name}: letter ${number} is not what the trigger holds; left to the collecting pass`,
        );
        return;
      }
      const closed = await recordLetters(office, source, [read]);
      const [settled] = await queue.hold([sight.lockToken]);
      if (settled === 'lost')
        office.log(`classify ${source.name}: the lock of letter ${number} ended before it was held`);
      await reopen(office, source, queue, closed);
    } finally {
      await queue.close();
    }
  } catch (error) {
    office.log(`classify ${source.name}: left unsettled: ${errorText(error)}`);
  }
}

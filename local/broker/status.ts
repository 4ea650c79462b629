/** Whether an entity takes and gives messages. */
import { BrokerError } from './errors.ts';

export const STATUSES = ['Active', 'Disabled', 'SendDisabled', 'ReceiveDisabled'] as const;
export type EntityStatus = (typeof STATUSES)[number];

/** What somebody wants of an entity: to send to it, to receive from it, or to look after what it holds. */
export type Access = 'send' | 'receive' | 'manage';

/** Peeking and settling go on while only receiving is off: what is locked must be able to end well. */
export function allows(status: EntityStatus, access: Access): boolean {
  if (status === 'Disabled') return false;
  if (status === 'SendDisabled') return access !== 'send';
  return status !== 'ReceiveDisabled' || access !== 'receive';
}

/** Throws com.microsoft:entity-disabled unless the status allows the access. */
export function checkStatus(path: string, status: EntityStatus, access: Access): void {
  if (allows(status, access)) return;
  const verb = { send: 'sent to', receive: 'received from', manage: 'managed in' }[access];
  throw new BrokerError(
    'com.microsoft:entity-disabled',
    `Messages cannot be ${verb} '${path}': its status is ${status}.`,
  );
}

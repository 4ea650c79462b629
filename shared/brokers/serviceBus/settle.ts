/** Settles locks by their tokens over the management node, on whatever connection they were made. */

import { inParallel } from '../../parallel.ts';
import type { LockToken, Settled } from '../broker.ts';
import { isGone, isRefusal } from './errors.ts';
import type { Disposition, Management } from './management.ts';
import { isLockToken } from './wireValues.ts';

const MAX_REQUEST = 100;

/**
 * Settles `locks`, many in one request. When the broker refuses a request for one of them, each is settled alone to
 * find out which. A token that was settled by the refused request after all, or by an earlier one whose answer was
 * lost, comes back as `lost`: the broker cannot tell the two apart.
 */
export async function settle(
  node: Management,
  locks: readonly LockToken[],
  disposition: Disposition,
): Promise<Settled[]> {
  const results: Settled[] = [];
  for (let i = 0; i < locks.length; i += MAX_REQUEST) {
    results.push(...(await settleTogether(node, locks.slice(i, i + MAX_REQUEST), disposition)));
  }
  return results;
}

async function settleTogether(
  node: Management,
  locks: readonly LockToken[],
  disposition: Disposition,
): Promise<Settled[]> {
  const isWellFormed = locks.every(isLockToken);
  if (locks.length > 1 && isWellFormed) {
    try {
      await node.settle(locks, disposition);
      return locks.map(() => 'settled');
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return inParallel(locks, (lock) => settleOne(node, lock, disposition));
}

async function settleOne(node: Management, lock: LockToken, disposition: Disposition): Promise<Settled> {
  // No broker ever gave out such a token, so there is no lock behind it.
  if (!isLockToken(lock)) return 'lost';
  try {
    await node.settle([lock], disposition);
    return 'settled';
  } catch (error) {
    if (isGone(error)) return 'lost';
    throw error;
  }
}

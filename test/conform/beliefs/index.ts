/** Every belief, in the order of their numbers. */
import type { Belief } from '../belief.ts';
import { administration } from './administration.ts';
import { deadLetters } from './deadLetters.ts';
import { deferral } from './deferral.ts';
import { duplicates } from './duplicates.ts';
import { expiry } from './expiry.ts';
import { forwarding } from './forwarding.ts';
import { partitions } from './partitions.ts';
import { peeking } from './peeking.ts';
import { refusals } from './refusals.ts';
import { sending } from './sending.ts';
import { sessions } from './sessions.ts';
import { settlement } from './settlement.ts';
import { topics } from './topics.ts';

export const BELIEFS: readonly Belief[] = [
  ...deadLetters,
  ...expiry,
  ...deferral,
  ...settlement,
  ...peeking,
  ...sending,
  ...sessions,
  ...duplicates,
  ...partitions,
  ...forwarding,
  ...topics,
  ...refusals,
  ...administration,
];

/**
 * The office as it is, with a shorter reach, and a clock ahead of the real one by as many ms as the file `SOAK_CLOCK` says: so both
 * office and broker can wait out a duplicate window in no time, and a restarted office knows of it.
 */
import { readFileSync } from 'node:fs';
import { registerOffice } from '../../functions/register.ts';
import { openOffice } from '../../shared/open.ts';

/** How long the file is believed, ms of the real clock. */
const BELIEVED = 50;

const settings = process.env;
const office = openOffice({
  root: new URL('../../', import.meta.url),
  settings,
  log: (line) => console.log(line),
});
let ahead = 0;
let readAt = Number.NEGATIVE_INFINITY;

function clock(): number {
  const now = office.clock();
  if (Math.abs(now - readAt) > BELIEVED) {
    ahead = Number(readFileSync(settings.SOAK_CLOCK ?? '', 'utf8'));
    readAt = now;
  }
  return now + ahead;
}

registerOffice({ ...office, clock, reach: Number(settings.SOAK_REACH) });

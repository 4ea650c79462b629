/**
 * What trust costs: the office beside the official client that moves the same letters in the same chunks without records,
 * checks or journal, and beside the ways of others. Broker, storage and office each in a process of its own; every ratio is of
 * one run, and what is compared takes turns.
 */
import { loadavg } from 'node:os';
import { type Chosen, choose } from './replay/choose.ts';
import type { CpuTimes } from './replay/cpu.ts';
import { type Moved, moveFar, moveRounds, queuesOf } from './replay/move.ts';
import { Stage } from './replay/stage.ts';
import { type StorageWrites, writesOfChunk } from './replay/storage.ts';
import { atLeast, atMost, figure, median, type Row } from './row.ts';

const ROUNDS = 3;
const LETTERS = 10_000;
/** Letters of the loop: it is slow, and its rate does not depend on how many there are. */
const LOOPED = 500;
/** A distance as between services of one region. */
const FAR_MS = 1;
const FAR_LETTERS = 10_000;
const FEW = 1000;
const MANY = 50_000;

export async function bench(): Promise<Row[]> {
  const queues = queuesOf(ROUNDS);
  const stage = await Stage.open(
    [...queues.offices, 'far', 'thousand', 'few', 'many'],
    [...queues.bare, 'bare-far', 'twin'],
  );
  try {
    const rounds = await moveRounds(stage, ROUNDS, LETTERS, LOOPED);
    const chosen = await choose(stage, FEW, MANY);
    const far = await moveFar(stage, FAR_LETTERS, FAR_MS);
    const storage = await writesOfChunk(stage.azurite.takeAccount().connectionString, LETTERS);
    return [...movedRows(rounds), ...farRows(far), ...storageRows(rounds, storage), ...chosenRows(chosen)];
  } finally {
    await stage.close();
  }
}

function movedRows(rounds: readonly Moved[]): Row[] {
  const rate = (name: string, of: (round: Moved) => number) => figure(name, median(rounds.map(of)), 'letters/s');
  const ratio = (of: (round: Moved) => number) => median(rounds.map(of));
  return [
    rate(`replay of ${LETTERS} letters`, ({ office }) => office.run),
    rate('  the bare client, same chunks', ({ bare }) => bare.move),
    rate('  get, publish, acknowledge one by one', ({ bare }) => bare.loop),
    atLeast('replay to the bare client', ratio(replayToBare), 'times', 0.6),
    atLeast('replay to one by one', ratio(replayToLoop), 'times', 8),
    figure('  the bare client to one by one', ratio(bareToLoop), 'times'),
    rate(`collect of ${LETTERS} letters`, ({ office }) => office.collect),
    rate('  the bare client, receive and defer', ({ bare }) => bare.hold),
    atLeast('collect to the bare client', ratio(collectToBare), 'times', 0.5),
  ];
}

const replayToBare = ({ office, bare }: Moved) => office.run / bare.move;
const replayToLoop = ({ office, bare }: Moved) => office.run / bare.loop;
const bareToLoop = ({ bare }: Moved) => bare.move / bare.loop;
const collectToBare = ({ office, bare }: Moved) => office.collect / bare.hold;

/** On one machine a round trip costs a fraction of a millisecond, which is what the loop has many of. */
function farRows({ collect, hold, run, move, loop }: Awaited<ReturnType<typeof moveFar>>): Row[] {
  const away = `${FAR_MS} ms away`;
  return [
    figure(`replay of ${FAR_LETTERS} letters, all ${away}`, run, 'letters/s'),
    atLeast('  to the bare client', run / move, 'times', 0.6),
    atLeast('  to one by one', run / loop, 'times', 8),
    figure(`collect of ${FAR_LETTERS} letters, all ${away}`, collect, 'letters/s'),
    atLeast('  to the bare client', collect / hold, 'times', 0.5),
  ];
}

/**
 * What the storage takes for what a chunk writes and a batch records, and what CPU time it all takes: no office can be faster
 * on this machine, and one whose cores are taken by others is slower, the more processes have to work together the more so.
 */
function storageRows(rounds: readonly Moved[], { markMs, journalMs, recordMs }: StorageWrites): Row[] {
  const cpu = (name: string, of: (round: Moved) => number) => figure(name, median(rounds.map(of)), 'ms');
  const sum = (times: CpuTimes) => times.self + times.office + times.broker + times.storage;
  return [
    figure('storage: marking the letters of a chunk', markMs, 'ms'),
    figure('storage: the other writes of a chunk', journalMs, 'ms'),
    cpu('CPU of a chunk: office, broker and storage', ({ office }) => sum(office.cpu)),
    cpu('  of it the storage, an emulator', ({ office }) => office.cpu.storage),
    cpu('CPU of a chunk: the bare client and broker', ({ bare }) => sum(bare.cpu)),
    figure('storage: recording a batch of 100', recordMs, 'ms'),
    cpu('CPU of a batch: office, broker and storage', ({ office }) => sum(office.collectCpu)),
    cpu('  of it the storage, an emulator', ({ office }) => office.collectCpu.storage),
    cpu('CPU of a batch: the bare client and broker', ({ bare }) => sum(bare.holdCpu)),
    figure('processes that wanted a core, with those of others', loadavg()[1] ?? 0, 'processes'),
  ];
}

function chosenRows({ ofFew, ofMany, ofManyPlanned, scanned, memoryFew, memoryMany }: Chosen): Row[] {
  const mebibytes = 1024 * 1024;
  return [
    figure(`replay of 100 of ${FEW}`, ofFew, 'ms'),
    figure(`replay of 100 of ${MANY}`, ofMany, 'ms'),
    figure('  with its planning', ofManyPlanned, 'ms'),
    figure('  by receiving and holding: until they are found and sent', scanned.found, 'ms'),
    figure('  by receiving and holding: until the others are given back', scanned.all, 'ms'),
    atLeast(`100 of ${MANY}: faster than receiving and holding`, scanned.all / ofMany, 'times', 50),
    figure('  counted until they are found and sent', scanned.found / ofMany, 'times'),
    atMost(`100 of ${MANY} to 100 of ${FEW}`, ofMany / ofFew, 'times', 1.5),
    figure(`peak memory of the office, replay of ${FEW}`, memoryFew / mebibytes, 'MiB'),
    figure(`peak memory of the office, replay of ${MANY}`, memoryMany / mebibytes, 'MiB'),
    atMost('  more', (memoryMany - memoryFew) / mebibytes, 'MiB', 64),
  ];
}

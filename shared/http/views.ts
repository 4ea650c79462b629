/** How the office shows what it knows: times as ISO 8601 in UTC, sequence numbers as text, secrets masked. */
import type { Catalog, Source } from '../catalog.ts';
import type { Counted } from '../counter.ts';
import type { Download } from '../desk/download.ts';
import type { History } from '../desk/history.ts';
import type { SourceStatus } from '../desk/sources.ts';
import type { Letter } from '../letter.ts';
import { type Masking, type ShownRecord, shownRecord } from '../mask.ts';
import { suggestedTarget } from '../plan/origin.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import type { PlanHead } from '../records/plan.ts';
import type { AuditEntry } from '../store/audit.ts';
import { iso } from '../timeText.ts';
import { classificationView } from './evidenceView.ts';

/** A source with its newest counts. */
export function sourceView({ source, row, snapshot, growth, problems }: SourceStatus) {
  return {
    name: source.name,
    namespace: source.namespace.host,
    entity: source.path,
    mode: source.mode,
    owner: source.owner,
    runbook: source.runbook ?? null,
    retainForMs: source.retainFor ?? null,
    open: snapshot?.open ?? null,
    byCategory: snapshot?.byCategory ?? {},
    oldestSeen: iso(snapshot?.oldest),
    counter: counterView(row?.counted),
    growth15m: growth ?? null,
    asOf: iso(row?.passedAt),
    heldBy: row?.occupant ?? null,
    health: problems.length === 0 ? 'Healthy' : 'Degraded',
    problems: problems.map(({ text }) => text),
  };
}

/** Service Bus's own count beside `open`, each with its time; `null` before the first pass. */
function counterView(counted: Counted | undefined) {
  if (counted === undefined) return null;
  const { at, count, unread, open, differsSince } = counted;
  return { count: count ?? null, at: iso(at), unread: unread || null, open, differsSince: iso(differsSince) };
}

/** One line of a list of letters. */
export function letterLine(record: ShownRecord) {
  const { letter, classification } = record;
  return {
    sequenceNumber: letter.sequenceNumber,
    messageId: letter.messageId ?? null,
    reason: classification.evidence.reason ?? null,
    category: classification.category,
    advice: classification.advice,
    rule: classification.rule,
    messageType: classification.evidence.messageType ?? null,
    exceptionType: classification.evidence.exceptionType ?? null,
    causeType: classification.evidence.causeType ?? null,
    label: classification.label ?? null,
    fingerprint: record.fingerprint,
    firstSeen: iso(record.firstSeen),
    enqueuedAt: iso(letter.enqueuedAt),
    bytes: letter.bytes,
    replayCount: letter.replay.count,
    replayId: letter.replay.planId ?? null,
  };
}

/** Everything that is recorded of a letter. */
export function letterView(source: Source, record: LetterRecord) {
  return shownLetterView(source, shownRecord(source, record));
}

/** A page of letters with bodies: a line of JSON each, and one that says where it goes on. */
export function downloadLines(source: Source, { letters, unreadable, continuation }: Download): string {
  const lines = letters.map(({ record, body }) => {
    const view = shownLetterView(source, record);
    return { ...view, body: { ...view.body, ...(body ?? { sections: null, cut: false }) } };
  });
  return `${[...lines, { continuation: continuation ?? null, unreadable }].map((line) => JSON.stringify(line)).join('\n')}\n`;
}

function shownLetterView(source: Source, record: ShownRecord) {
  const { letter } = record;
  const { description } = record.classification.evidence;
  return {
    ...letterLine(record),
    description: description ?? null,
    cause: record.cause,
    ...classificationView(source, record),
    deliveryCount: letter.deliveryCount,
    correlationId: letter.correlationId ?? null,
    subject: letter.subject ?? null,
    contentType: letter.contentType ?? null,
    sessionId: letter.sessionId ?? null,
    partitionKey: letter.partitionKey ?? null,
    to: letter.to ?? null,
    replyTo: letter.replyTo ?? null,
    suggestedTarget: suggestedTarget(source, letter) ?? null,
    timeToLiveMs: letter.timeToLive ?? null,
    properties: letter.properties,
    body: letter.body,
    replay: replayView(letter),
    maybeSentBy: record.maybeSentBy ?? null,
    office: record.office,
    cut: record.cut,
    refused: record.refused ?? null,
    fate: record.closed === undefined ? null : fateView(record),
  };
}

function replayView({ replay }: Letter) {
  if (replay.count === 0 && replay.planId === undefined) return null;
  return { count: replay.count, planId: replay.planId ?? null, of: replay.of ?? null, at: iso(replay.at) };
}

/** How a letter left. */
export function fateView({ closed }: LetterRecord) {
  return closed === undefined ? null : { fate: closed.fate, at: iso(closed.at), planId: closed.planId ?? null };
}

/** Earlier deaths, latest first, and why there are no more. Masked as the letter is and as where each of them lay. */
export function historyView(catalog: Catalog, source: Source, { lives, end }: History) {
  return {
    history: lives.map(({ sourceName, record: recorded }) => {
      const there = catalog.sources.find(({ key }) => key === recorded.source);
      const masking: Masking = { mask: [...source.mask, ...(there?.mask ?? [])] };
      const record = shownRecord(masking, recorded);
      return {
        source: sourceName,
        ...letterLine(record),
        cause: record.cause,
        failedAt: iso(record.classification.evidence.failedAt),
        fate: fateView(record),
      };
    }),
    historyEnd: end,
  };
}

/** A plan with its counts and findings. */
export function planView(head: PlanHead) {
  return {
    id: head.id,
    source: head.sourceName,
    action: head.action,
    target: head.target || null,
    state: head.state,
    stateReason: head.stateReason || null,
    requested: head.request === 'none' ? null : head.request,
    selection: JSON.parse(head.selection) as unknown,
    choices: head.choices,
    findings: head.findings,
    counts: head.counts,
    letters: head.tally,
    secondsAtRate: secondsAtRate(head.counts.pending),
    pace: paceView(head),
    createdAt: iso(head.createdAt),
    createdBy: head.createdBy,
    expiresAt: iso(head.expiresAt),
    startedAt: iso(head.startedAt),
    startedBy: head.startedBy || null,
    finishedAt: iso(head.finishedAt),
  };
}

/** How long what is pending takes at some rates (letters a second), without the ramp's pauses. */
function secondsAtRate(letters: number): Record<string, number> {
  return Object.fromEntries([1, 10, 50, 200].map((rate) => [rate, Math.ceil(letters / rate)]));
}

/** How fast a run goes and where it is in its ramp; `null` for a plan that was never started. */
function paceView({ pace: { rate, ramp }, progress, startedAt }: PlanHead) {
  if (startedAt === undefined) return null;
  const steps = ramp && {
    steps: ramp.steps,
    observeMs: ramp.observeMs,
    haltAbove: ramp.haltAbove,
    step: progress.step + 1,
  };
  return {
    rate: rate || null,
    ramp: steps ?? false,
    observedFrom: progress.observedFrom ? iso(progress.observedFrom) : null,
  };
}

export function auditView(entry: AuditEntry) {
  return {
    at: iso(entry.at),
    operator: entry.operator,
    operation: entry.operation,
    source: entry.sourceName || null,
    planId: entry.planId ?? null,
    group: entry.group ?? null,
    letterCount: entry.letterCount,
    letters: entry.letters,
    outcome: entry.outcome,
    closedAt: iso(entry.closedAt),
  };
}

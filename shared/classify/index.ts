import { errorText } from '../errors.ts';
import { judge } from './category.ts';
import { azureFunctions } from './dialects/azureFunctions.ts';
import { babelQueue } from './dialects/babelQueue.ts';
import { dapr } from './dialects/dapr.ts';
import { massTransit } from './dialects/massTransit.ts';
import { nServiceBus } from './dialects/nServiceBus.ts';
import { rebus } from './dialects/rebus.ts';
import { serviceBus } from './dialects/serviceBus.ts';
import { wolverine } from './dialects/wolverine.ts';
import { type Classification, type Dialect, type Evidence, LAYER_KINDS, type Layer, type Verdict } from './evidence.ts';
import { checkPayload, type Knowledge, NO_KNOWLEDGE, ownVerdict } from './knowledge.ts';
import { messageEvidence } from './message.ts';
import type { Sight } from './sight.ts';
import { signsOf } from './signs.ts';
import { present } from './text.ts';

/** The header formats that the office reads. Within a layer they are asked in this order. */
export const DIALECTS: readonly Dialect[] = [
  massTransit,
  nServiceBus,
  rebus,
  wolverine,
  babelQueue,
  dapr,
  azureFunctions,
  serviceBus,
];

/**
 * Reads a letter's evidence and judges it. Never throws: a dialect that does makes the letter `unknown`, with the
 * error kept, so that one odd message can neither be lost nor stop the others.
 */
export function classify(
  sight: Sight,
  dialects: readonly Dialect[] = DIALECTS,
  knowledge: Knowledge = NO_KNOWLEDGE,
): Classification {
  const layers: Layer[] = [];
  let error: string | undefined;
  for (const dialect of dialects) {
    try {
      const evidence = dialect.read(sight);
      if (evidence !== undefined) layers.push({ dialect: dialect.name, layer: dialect.layer, evidence });
    } catch (thrown) {
      error ??= `${dialect.name}: ${errorText(thrown, 500)}`;
    }
  }
  layers.sort((a, b) => LAYER_KINDS.indexOf(a.layer) - LAYER_KINDS.indexOf(b.layer));
  const evidence = merged(layers, messageEvidence(sight));
  const found = { evidence, dialects: layers.map(({ dialect }) => dialect), layers };
  if (error !== undefined) return { ...UNREADABLE, ...found, ...unread(sight), error };
  const payload = layers.map(({ dialect }) => dialects.find(({ name }) => name === dialect)?.payload).find(Boolean);
  const violations = checkPayload(knowledge, sight, evidence.messageType, payload);
  const verdict = firmly(
    sight,
    ownVerdict(knowledge, sight, evidence) ??
      (violations.length > 0 ? { ...MISFIT, rule: `payload:${evidence.messageType}` } : judge(evidence, layers)),
  );
  const signs = signsOf(sight, evidence, layers);
  return {
    ...verdict,
    ...found,
    ...(violations.length > 0 && { violations }),
    ...(signs.length > 0 && { signs }),
    ...unread(sight),
  };
}

/**
 * The verdict on a letter of which only the evidence is at hand, as a record keeps it; `sight` may be without body. For rules that
 * have changed since it was read.
 */
export function judgeAgain(sight: Sight, before: Classification, knowledge: Knowledge): Classification {
  if (before.error !== undefined) return before;
  const { evidence, layers, dialects, violations = [] } = before;
  const isMisfit = violations.length > 0 && knowledge.payloads.has(evidence.messageType ?? '');
  const verdict = firmly(
    sight,
    ownVerdict(knowledge, sight, evidence) ??
      (isMisfit ? { ...MISFIT, rule: `payload:${evidence.messageType}` } : judge(evidence, layers)),
  );
  const { unread: had } = before;
  // Without the body nothing can be said of it but what was.
  const ofBody = before.signs?.filter((sign) => sign.startsWith('body-')) ?? [];
  const signs = [...signsOf(sight, evidence, layers), ...ofBody];
  return {
    ...verdict,
    evidence,
    dialects,
    layers,
    ...(isMisfit && { violations }),
    ...(signs.length > 0 && { signs: [...new Set(signs)] }),
    ...(had !== undefined && { unread: had }),
  };
}

const UNREADABLE: Verdict = { category: 'unknown', advice: 'investigate', rule: 'dialect-failed' };
/** A body that does not fit its schema fails again wherever it is sent. */
const MISFIT = { category: 'poison', advice: 'fix-first' } as const;

/** Whatever it says: a letter that came back has shown that sending it again was not enough. */
function firmly({ letter }: Sight, verdict: Verdict): Verdict {
  if (letter.replay.count === 0 || verdict.advice !== 'replay') return verdict;
  return { ...verdict, advice: 'investigate', rule: `${verdict.rule}+returned` };
}

function unread(sight: Sight): { readonly unread?: readonly string[] } {
  const names = sight.unread;
  return names.length === 0 ? {} : { unread: names };
}

/**
 * One evidence of all layers, given from the innermost to the outermost. The innermost to know a field decides it; what the
 * message tells by itself comes last. Reason, description and mechanism are how the letter got here, so there the broker decides.
 */
function merged(layers: readonly Layer[], message: Evidence): Evidence {
  let evidence: Evidence = message;
  for (const layer of layers.toReversed()) evidence = { ...evidence, ...layer.evidence };
  const { exceptionType: _t, exceptionMessage: _m, causeType: _c, causeMessage: _n, frame: _f, ...rest } = evidence;
  return { ...rest, ...exceptionOf(layers), ...arrivalOf(layers) };
}

/** An exception and its cause belong together: the cause in one layer says nothing about the exception in another. */
function exceptionOf(layers: readonly Layer[]): Evidence {
  const named = layers.find(({ evidence }) => evidence.exceptionType !== undefined) ?? layers.find(hasMessage);
  if (named === undefined) return {};
  const { exceptionType, exceptionMessage, causeType, causeMessage, frame } = named.evidence;
  return present({ exceptionType, exceptionMessage, causeType, causeMessage, frame });
}

function hasMessage({ evidence }: Layer): boolean {
  return evidence.exceptionMessage !== undefined || evidence.frame !== undefined;
}

function arrivalOf(layers: readonly Layer[]): Evidence {
  const broker = layers.findLast(({ layer }) => layer === 'broker');
  if (broker === undefined) return {};
  const { reason, description, mechanism } = broker.evidence;
  return present({ reason, description, mechanism });
}

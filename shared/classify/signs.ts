/** What the counts and the body of a letter tell beside its exception. */
import { exceptionVerdict } from './category.ts';
import type { Evidence, Layer, Sign } from './evidence.ts';
import type { Sight } from './sight.ts';

/** Dialects of frameworks that write an exception on a message also when they give it back. */
const WRITES_ALWAYS: readonly string[] = ['masstransit'];
/** Words for a body that could not be read, where no exception says it. */
const UNDECODABLE =
  /deseriali[sz]|decod(?:e|ing)|unmarshal|malformed|unparsable|unreadable|(?:invalid|not valid|bad|broken) (?:json|utf-?8|encoding|body|payload)|pars(?:e|ing) (?:error|failed)|(?:cannot|could not|failed to|unable to) (?:parse|read|decode)/i;

/** The signs, in the order of {@link SIGNS}. Looks at the body only where the text says that it cannot be read. */
export function signsOf(sight: Sight, evidence: Evidence, layers: readonly Layer[]): readonly Sign[] {
  return [...countSigns(evidence, layers), ...bodySigns(sight, evidence)];
}

function countSigns(evidence: Evidence, layers: readonly Layer[]): Sign[] {
  const { mechanism, reason, description } = evidence;
  if (tellsException(evidence)) return [];
  if (mechanism === 'delivery-limit') {
    return layers.some(({ dialect }) => WRITES_ALWAYS.includes(dialect)) ? ['locks-ran-out'] : ['no-exception-told'];
  }
  // The broker gives a reason for all that it does by itself.
  return mechanism === undefined && reason === undefined && description === undefined ? ['no-reason-told'] : [];
}

function tellsException({ exceptionType, exceptionMessage, frame }: Evidence): boolean {
  return exceptionType !== undefined || exceptionMessage !== undefined || frame !== undefined;
}

function bodySigns({ body }: Sight, evidence: Evidence): Sign[] {
  if (!saysUndecodable(evidence) || !body.isReadable) return [];
  if (body.json() !== undefined) return ['body-is-json'];
  return body.isText() ? ['body-is-text'] : [];
}

function saysUndecodable(evidence: Evidence): boolean {
  const verdict = exceptionVerdict(evidence);
  if (verdict !== undefined) return verdict.rule === 'exception:deserialisation';
  const { reason, description, mechanism } = evidence;
  const isOwn = mechanism === undefined || mechanism === 'dead-lettered';
  return isOwn && [reason, description].some((text) => text !== undefined && UNDECODABLE.test(text.slice(0, 600)));
}

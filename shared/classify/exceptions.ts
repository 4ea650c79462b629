/**
 * Exceptions in free text, as runtimes print them: which it was, what it said, and which one was innermost. Every look goes
 * through the text once. How a head is told from other words is in heads.ts, how a chain is followed in chains.ts.
 */
import { type Chain, chainsIn, firstHead, MAX_CHAIN, nextBeginning, pythonChains } from './chains.ts';
import { behindLead, headAt, isExceptionName, messageAt } from './heads.ts';
import { type Printed, printed } from './printed.ts';
import { clean, LIMIT, present } from './text.ts';
import { TRACEBACK } from './tracebacks.ts';

/** What stands for the message where a trace ends before its exception. */
export const CUT_TRACE = 'the trace is cut before its exception is told';

/** Reads a printed exception of any runtime; nothing where the text does not begin like one. */
export function readException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  const special = readSpecial(cut);
  if (special !== undefined) return special;
  const at = behindLead(cut);
  return headAt(cut, at) === undefined ? {} : readFrom(cut, at);
}

/**
 * The first exception anywhere in free text, such as `Attempt 3 of 3 failed: Ns.Oops: message`. An indented line is a part of a
 * stack or of a program, and never the place where one begins.
 */
export function findException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  const special = readSpecial(cut) ?? readLabelled(cut);
  if (special !== undefined) return special;
  // As a whole in quotes.
  const told = /^"[^"\n]{1,4000}"$/.test(cut) ? cut.slice(1, -1) : cut;
  const place = firstHead(told, 0);
  return place < 0 ? {} : readFrom(told, place);
}

const CONDITION = /\bError\{Condition: ([\w:.-]{1,80}), Description: ([^\n]{0,900}?), Info: /;
const LABELLED =
  /\b(?:exception|error)(?: ?type)? ?[:=] ?"?([A-Za-z_][\w.+$]{2,200})"?[,;] ?(?:exception |error )?message ?[:=] ?"?([^\n"]{1,900})/i;

/** Errors of Go's clients for AMQP, whose condition says what it was; and type and message with their names in front. */
function readLabelled(text: string): Printed | undefined {
  const condition = text.includes('Error{Condition: ') ? CONDITION.exec(text.slice(0, 4000)) : null;
  if (condition !== null) return { exceptionMessage: `${condition[1]}: ${condition[2]}` };
  const [, type = '', message] = /message ?[:=]/i.test(text.slice(0, 1000))
    ? (LABELLED.exec(text.slice(0, 2000)) ?? [])
    : [];
  return isExceptionName(type)
    ? present({ exceptionType: type, exceptionMessage: clean(message, LIMIT.message) })
    : undefined;
}

/** Forms that tell of an exception otherwise than by a head at their beginning. */
function readSpecial(text: string): Printed | undefined {
  const worker = text.indexOf('Result: Failure\n');
  if (worker >= 0) return readWorker(text, worker);
  if (text.includes(TRACEBACK)) {
    const { chains, group } = pythonChains(text);
    if (chains.length > 0) return printed(chains, group);
    // Cut, unless its exception is told in front of it.
    return firstHead(text.slice(0, text.indexOf(TRACEBACK)), 0) >= 0 ? undefined : { exceptionMessage: CUT_TRACE };
  }
  return readPanic(text);
}

/** The Functions worker writes `Result: Failure`, `Exception: …`, and a `Stack: …` that may begin with the exception, too. */
function readWorker(text: string, at: number): Printed {
  const told = text.slice(at + 'Result: Failure\n'.length);
  const stackAt = told.indexOf('\nStack:');
  const stack = stackAt < 0 ? '' : told.slice(stackAt + '\nStack:'.length).trimStart();
  const first = told.startsWith('Exception: ') ? 'Exception: '.length : 0;
  const inner: Printed =
    [readException(stack), readFrom(stackAt < 0 ? told : told.slice(0, stackAt), first)].find(
      ({ exceptionType, exceptionMessage }) => exceptionType !== undefined && exceptionMessage !== CUT_TRACE,
    ) ?? present({ exceptionMessage: messageAt(told, first) });
  // The host wraps it into exceptions of its own, which tell no more.
  const outer = at === 0 ? undefined : headAt(text, behindLead(text));
  if (outer === undefined) return inner;
  const cause = inner.causeType === undefined ? inner.exceptionType : inner.causeType;
  const message = inner.causeType === undefined ? inner.exceptionMessage : inner.causeMessage;
  return present({
    exceptionType: outer.type,
    exceptionMessage: outer.message,
    causeType: cause,
    causeMessage: message,
  });
}

/** Go's `panic: …` and Rust's `thread 'main' panicked at …`. */
function readPanic(text: string): Printed | undefined {
  const go = text.startsWith('panic: ') ? 0 : text.indexOf('\npanic: ') + 1;
  if (go > 0 || text.startsWith('panic: ')) {
    const message = messageAt(text, go + 'panic: '.length);
    return present({ exceptionType: 'panic', exceptionMessage: message?.replace(/ \[recovered\]$/, '') });
  }
  const rust =
    /^thread '[^'\n]{1,100}' (?:\(\d{1,9}\) )?panicked at (?:'(.{1,900})', \S{1,300}$|\S{1,300}:\d{1,7}:\d{1,7}:\n)/m.exec(
      text.slice(0, 4000),
    );
  if (rust === null) return undefined;
  const message = rust[1] ?? messageAt(text, rust.index + rust[0].length);
  return present({ exceptionType: 'panic', exceptionMessage: clean(message, LIMIT.message) });
}

/** Reads exceptions from the head of one on: its chain, and those of others that are told below it. */
function readFrom(text: string, at: number): Printed {
  const chains: Chain[] = [];
  let place = at;
  for (let i = 0; i < MAX_CHAIN && place >= 0; i++) {
    const next = nextBeginning(text, place);
    const part = text.slice(place, next < 0 ? text.length : next);
    chains.push(...chainsIn(part));
    place = next;
  }
  return printed(chains);
}

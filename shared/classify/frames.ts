/** The first stack frame that is the application's own, of .NET, Java, Node, Python, PHP, Ruby, Go and Rust. Each line is looked at once. */
import { linesOf } from './heads.ts';
import { clean, LIMIT } from './text.ts';
import { pythonTrace, TRACEBACK } from './tracebacks.ts';

/** Longest line that can be a frame, characters. */
const MAX_LINE = 1000;

/** Namespaces of others in .NET and Java: the first one to three parts of a name. */
const FOREIGN_CODE: ReadonlySet<string> = new Set(
  (
    'System Microsoft MassTransit NServiceBus Rebus Wolverine JasperFx Azure Amazon Google Grpc Newtonsoft Npgsql MySql ' +
    'MySqlConnector MongoDB Oracle StackExchange Polly Dapper MediatR AutoMapper Autofac Castle FluentValidation GreenPipes Refit ' +
    'RestSharp RabbitMQ Confluent Serilog OpenTelemetry java javax jakarta jdk sun com.sun com.azure com.microsoft com.google ' +
    'com.fasterxml com.mysql com.zaxxer com.rabbitmq org.springframework org.apache org.hibernate org.postgresql org.jboss ' +
    'org.eclipse org.slf4j io.netty io.vertx io.quarkus io.smallrye io.micrometer io.opentelemetry io.github.resilience4j reactor ' +
    'feign okhttp3 retrofit2 kotlin kotlinx scala akka groovy oracle'
  ).split(' '),
);
/** Methods that .NET makes while it runs. */
const MADE_CODE = /^(?:lambda_method|InvokeStub_)/;

/** Most lines that are looked at: what is not among the first ones of a stack is no reason to look through all of it. */
const MAX_LINES = 300;

/** Parts of the paths of foreign files, in all languages that tell them. */
const FOREIGN_PATHS = [
  'node:',
  'internal/',
  '/node_modules/',
  '\\node_modules\\',
  '/site-packages/',
  '\\site-packages\\',
  '/dist-packages/',
  '/lib/python',
  '\\Python3',
  '/vendor/',
  '\\vendor\\',
  '<frozen',
  '<string>',
  '<anonymous>',
  '[internal function]',
  'native code',
  '/azure-functions-host/',
  'azure_functions_worker',
  '/usr/local/go/',
  '/pkg/mod/',
  '/gems/',
  '/lib/ruby/',
  '/rustc/',
  '/.cargo/',
] as const;

/** The frame, such as `Billing.PaymentClient.Charge (PaymentClient.cs:42)`; `undefined` when there is none of the application's own. */
export function ownFrame(stack: string | undefined): string | undefined {
  if (stack === undefined) return undefined;
  const cut = stack.length > LIMIT.stack ? stack.slice(0, LIMIT.stack) : stack;
  if (cut.includes(TRACEBACK)) return pythonFrame(pythonTrace(cut));
  // Java prints the innermost exception last, all others first.
  const caused = cut.lastIndexOf('\nCaused by: ');
  return (caused < 0 ? undefined : firstOwn(cut.slice(caused + 1))) ?? firstOwn(cut);
}

function firstOwn(stack: string): string | undefined {
  let before = '';
  for (const line of linesOf(stack, MAX_LINES)) {
    if (line.length > MAX_LINE) continue;
    const frame = frameIn(line, before);
    if (frame !== undefined) return clean(frame, LIMIT.name);
    before = line;
  }
  // The Functions worker prints the frames of Python without the words that stand in front of them elsewhere.
  return stack.includes('  File "') ? pythonFrame(stack) : undefined;
}

function frameIn(line: string, before: string): string | undefined {
  // Of the Functions worker, and of Node where an object follows.
  const text = line
    .replace(/^Stack ?(?:Trace)?:/i, '')
    .replace(/ \{\s*$/, '')
    .trim();
  if (text.startsWith('at ')) return atFrame(text.slice(3));
  if (text.startsWith('#')) return phpFrame(text);
  if (text.includes('.rb:')) return rubyFrame(text);
  if (text.includes('.go:')) return goFrame(text, before);
  return /^\s/.test(line) ? otherFrame(text) : undefined;
}

/** .NET in the machine's own language: `bei Shop.Pay.Charge(Order o) in C:\Pay.cs:Zeile 42.`, one word in place of `at`. */
function otherFrame(text: string): string | undefined {
  const blank = text.indexOf(' ');
  if (blank < 1 || blank > 10 || /[.(]/.test(text.slice(0, blank))) return undefined;
  const call = text.slice(blank + 1);
  const open = call.indexOf('(');
  const close = call.indexOf(')', open);
  if (
    open < 0 ||
    close < 0 ||
    !/^[A-Za-z_][\w<>`+|[\],]{0,200}(?:\.[\w<>`+|[\],]{1,200}){1,20}$/.test(call.slice(0, open))
  )
    return undefined;
  const place = /[\\/]([^\\/:]{1,200}\.(?:cs|vb|fs)):\D{0,12}(\d{1,7})/.exec(call.slice(close));
  return dotnetFrame(call.slice(0, close + 1), place === null ? undefined : `${place[1]}:${place[2]}`);
}

/** Ruby: `from app/pay.rb:12:in 'charge'`, with or without `from`. */
function rubyFrame(text: string): string | undefined {
  const match = /^(?:from )?([^\s:]{1,400}\.rb):(\d{1,7}):in [`'](.{1,200}?)'/.exec(text);
  if (match?.[1] === undefined || isForeignPath(match[1])) return undefined;
  return `${match[3]} (${fileOf(match[1])}:${match[2]})`;
}

/** Go: what was called, and in the next line `\t/app/pay/handler.go:42 +0x1d`. */
function goFrame(text: string, before: string): string | undefined {
  const match = /^([^\s:]{1,400}\.go):(\d{1,7})(?: \+0x[0-9a-f]{1,16})?$/.exec(text);
  if (match?.[1] === undefined || isForeignPath(match[1])) return undefined;
  const place = `${fileOf(match[1])}:${match[2]}`;
  const open = before.lastIndexOf('(');
  const called = fileOf(open > 0 ? before.slice(0, open) : '').replace(/[()*]/g, '');
  return called === '' ? place : `${called} (${place})`;
}

/** A frame of .NET, Java or Node, without its `at `; `undefined` when it is foreign or no frame. */
function atFrame(text: string): string | undefined {
  const inFile = text.lastIndexOf(' in ');
  const line = text.lastIndexOf(':line ');
  if (inFile > 0 && line > inFile) {
    return dotnetFrame(
      text.slice(0, inFile),
      `${fileOf(text.slice(inFile + 4, line))}:${digits(text.slice(line + 6))}`,
    );
  }
  const open = text.lastIndexOf('(');
  const place = open > 0 && text.endsWith(')') ? text.slice(open + 1, -1) : undefined;
  if (
    place !== undefined &&
    /^(?:[\w$-]{1,200}\.(?:java|kt|scala|groovy)(?::\d{1,7})?|Native Method|Unknown Source)$/.test(place)
  ) {
    // In front of the class may stand its loader and module: `app//com.acme.Orders` or `java.base/java.util.List`.
    const method = text.slice(text.lastIndexOf('/', open) + 1, open);
    return isForeignCode(method) || place === 'Native Method' ? undefined : `${method} (${place})`;
  }
  if (place !== undefined && /:\d{1,7}:\d{1,7}$/.test(place)) return nodeFrame(text.slice(0, open).trim(), place);
  if (/:\d{1,7}:\d{1,7}$/.test(text)) return nodeFrame('', text);
  return place === undefined ? undefined : dotnetFrame(text, undefined);
}

function isForeignCode(name: string): boolean {
  let end = -1;
  for (let parts = 0; parts < 3; parts++) {
    end = name.indexOf('.', end + 1);
    if (end < 0) break;
    if (FOREIGN_CODE.has(name.slice(0, end))) return true;
  }
  return MADE_CODE.test(name);
}

function isForeignPath(path: string): boolean {
  return path === 'native' || FOREIGN_PATHS.some((part) => path.includes(part));
}

/** `Ns.Class.Method(args)`, where the compiler's own names for async methods and lambdas give way to those in the source. */
function dotnetFrame(signature: string, place: string | undefined): string | undefined {
  const open = signature.indexOf('(');
  const full = open < 0 ? signature : signature.slice(0, open);
  if (!/^[A-Za-z_][^\s]{0,400}$/.test(full) || !full.includes('.') || isForeignCode(full)) return undefined;
  const parts = full.split('.').flatMap((part): string[] => {
    if (part === 'MoveNext' || part.startsWith('<>c')) return [];
    return [/^<+([\w$]{1,200})>/.exec(part)?.[1] ?? part];
  });
  // `Class.<Handle>d__5` is nested in its class with a plus.
  const name = parts
    .join('.')
    .replace(/\+<([\w$]{1,200})>d__\d{1,9}/, '.$1')
    .replace(/\+<>c\w{0,100}/, '');
  return place === undefined ? name : `${name} (${place})`;
}

function nodeFrame(called: string, place: string): string | undefined {
  if (isForeignPath(place)) return undefined;
  const name = called.startsWith('async ') ? called.slice(6) : called;
  const line = place.slice(0, place.lastIndexOf(':'));
  const colon = line.lastIndexOf(':');
  const shown = `${fileOf(line.slice(0, colon))}:${digits(line.slice(colon + 1))}`;
  return name === '' ? shown : `${name} (${shown})`;
}

/** PHP: `#0 /app/src/Handler.php(42): App\Handler->handle()`. */
function phpFrame(text: string): string | undefined {
  const match = /^#\d{1,5} (.{1,600}?)\((\d{1,7})\): /.exec(text);
  const path = match?.[1];
  if (match === null || path === undefined || isForeignPath(path)) return undefined;
  const call = text.slice(match[0].length);
  const open = call.indexOf('(');
  const place = `${fileOf(path)}:${match[2]}`;
  return open > 0 ? `${call.slice(0, open)} (${place})` : place;
}

/** Python prints the innermost exception first, and the innermost frame of each last. */
function pythonFrame(stack: string): string | undefined {
  let found: string | undefined;
  for (const line of linesOf(stack, MAX_LINES)) {
    if (found !== undefined && line.startsWith('Traceback (most recent call last)')) return found;
    const text = line.length > MAX_LINE ? '' : line.trim();
    if (!text.startsWith('File "')) continue;
    const end = text.indexOf('", line ', 6);
    const path = end < 0 ? '' : text.slice(6, end);
    if (path === '' || isForeignPath(path)) continue;
    const rest = text.slice(end + 8);
    const inName = rest.indexOf(', in ');
    const place = `${fileOf(path)}:${digits(rest)}`;
    found = clean(inName < 0 ? place : `${rest.slice(inName + 5)} (${place})`, LIMIT.name);
  }
  return found;
}

/** The last part of a path: folders differ from machine to machine. */
function fileOf(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

function digits(text: string): string {
  return /^\d{1,7}/.exec(text.trim())?.[0] ?? '0';
}

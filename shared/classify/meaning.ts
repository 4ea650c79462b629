/**
 * Which words of a message name something that the program knows (a column, a type, a status) and which are values of one letter. Two
 * causes may differ in nothing but such a name; a value must not get into a group, because it tears the group apart and because it may
 * be somebody's. In doubt it is a value.
 */

/** Names of columns, types, paths and the like: one word, dots and brackets in it. */
const NAME = /^[\p{L}_$[(][\p{L}\p{N}_$.:+<>`[\]()\\-]{0,120}$/u;

/** The statuses of gRPC, and of HTTP in one word. */
const STATUSES = new Set(
  (
    'ok cancelled unknown invalidargument deadlineexceeded notfound alreadyexists permissiondenied resourceexhausted ' +
    'failedprecondition aborted outofrange unimplemented internal unavailable dataloss unauthenticated badrequest unauthorized ' +
    'forbidden conflict gone toomanyrequests internalservererror badgateway serviceunavailable gatewaytimeout'
  ).split(' '),
);
/** Types that languages have built in, and what their messages call nothing. */
const TYPES = new Set(
  (
    'string str int integer long short float double decimal number bool boolean bytes byte char date datetime array list dict map set ' +
    'tuple object nonetype none null undefined nan void uuid guid utf-8 utf8 ascii latin-1'
  ).split(' '),
);

const EXCEPTION = /^[A-Za-z_][\w.+$`\\]{0,250}(?:Exception|Error|Fault|Failure)$/;
/** A class with its namespace. In lower case alone it might be a host. */
const QUALIFIED =
  /^(?:(?:System|Microsoft|Azure|java|javax|jakarta|kotlin|scala)\.[\w.+$`<>[\]]{1,200}|[A-Za-z_]\w*(?:[.\\][A-Za-z_]\w*){1,12}[.\\][A-Z]\w*(?:[+$`<[][\w.+$`<>[\]]{0,100})?)$/;
/** `503 Service Unavailable`, `Result::unwrap()` */
const STATUS_LINE = /^[1-5]\d\d [A-Z][A-Za-z -]{1,40}$/;
const CALL = /^[A-Za-z_][A-Za-z_:.]{0,80}\(\)$/;
const ERRNO = /^E[A-Z]{3,20}$/;
const CONSTANT = /^[A-Z]{2,30}(?:_[A-Z]{1,30}){1,8}$/;

/** Whether a word is a status, a type or an error's name, wherever it stands. */
export function isMeaning(word: string): boolean {
  const plain = word.toLowerCase().replaceAll('_', '');
  if (STATUSES.has(plain) || TYPES.has(plain)) return true;
  if (STATUS_LINE.test(word) || CALL.test(word)) return true;
  return (EXCEPTION.test(word) || QUALIFIED.test(word) || ERRNO.test(word) || CONSTANT.test(word)) && !hasNumber(word);
}

/** Whether a word is formed like a name that somebody wrote into a program; no address, no number, no random letters. */
export function isName(word: string): boolean {
  return NAME.test(word) && !hasNumber(word.replace(/`\d{1,3}|\[\d{1,9}\]/g, '')) && !isRandom(word);
}

function hasNumber(word: string): boolean {
  return /\d{3}/.test(word) || (word.match(/\d{1,2}/g)?.length ?? 0) > 2;
}

/** Letters only, and yet no word: hex digits, or upper and lower case in turn as in encoded bytes. */
export function isRandom(word: string): boolean {
  if (/^[a-f]{8,}$/i.test(word)) return true;
  if (word.length < 16 || !/^[\w+/-]+$/.test(word)) return false;
  const parts = word.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
  return word.length / parts.length < 3; // words put together are longer
}

/** A path without the positions in it: which item of a list was wrong varies with the letter. */
export function withoutIndexes(path: string): string {
  return path.replace(/\[\d{1,9}\]/g, '[]').replace(/([.\\/])\d{1,9}(?=[.\\/])/g, '');
}

/** What a word in quotes is called by the words before it, so that it is known that a program's name follows. */
const CALLED = new RegExp(
  '(?:^|[^\\p{L}])(?:' +
    'objects?(?: name)?|objektname|objekt|tables?(?: name)?|tabelle|tabla|relations?|columns?(?: name)?|spalte|colonne|columna|constraint|index|' +
    'view|schema|database|procedure|function|trigger|sequence|collection|bucket|container|queue|topic|subscription|exchange|stream|entity|' +
    'types?|typ|class|klasse|struct|interface|enum|namespace|assembly|module|package|library|property|properties|eigenschaft|propriété|' +
    'fields?|feld|champ|campo|member|attribute|parameter|param|argument|methods?|operation|action|command|handler|service|header|setting|' +
    'option|feature|variable|symbol|(?:import|for|foreign|primary|unique|array|partition) (?:key|name)|reading|setting|activate|pointer|element|scope|claim|' +
    'policy|permission|CircuitBreaker|RateLimiter|bulkhead|breaker|KeyError|handler for message|state|status|code|reason|kind|mode|level|severity|phase' +
    ')(?: named| not found)?[\\s:=(]{0,3}$|(?:^|[^\\p{L}])(?:No such|StatusCode|ErrorCode|statusCode|errorCode|Path) ?[=:]? ?\\(?$',
  'iu',
);
/** What is unknown to the program is the letter's word. */
const STRANGE =
  /(?:unrecogni[sz]ed|unexpected|additional|unsupported|unknown (?:field|property|member|key)|could not find (?:field|property|member|key))[\s\p{L}]{0,20}[\s:=(]{0,3}$/iu;
/** Codes that are data. */
const DATA_CODE =
  /(?:zip|postal|post|country|currency|language|product|promo|discount|coupon|voucher|item|article|bar|booking|tracking|verification|pin|area|dialling|tax|bank|sort|airport|colou?r)[ _-]?(?:code|status|type|class)[\s:=(]{0,3}$/i;
/** Who is called so is somebody. */
const SOMEBODY =
  /(?:user|customer|client|person|people|patient|employee|member|owner|author|sender|recipient|contact|account|tenant|login|role|principal|name)s?(?: name)?[\s:=(]{0,3}$/i;
/** What a word in quotes is called by the words behind it. */
const CALLED_AFTER =
  /^\s?(?:(?:field|property|column|argument|parameter|attribute|header|element|table)\b|object (?:has|is)\b|is not defined\b|is undefined\b|does not exist on type\b|of (?:null|undefined|relation|table|type|class)\b)/;
/** The words of validators: what stands before them is a field, even where its name is spelt in several words. */
const VALIDATED =
  /^\s(?:is a required|is required\b|cannot be (?:null|empty|blank)|may not be (?:null|empty|blank)|(?:must|should) (?:not )?be (?:empty|null|blank|defined|greater|less|larger|longer|shorter|between|equal|valid|a valid|an? (?:string|number|integer|boolean|array|object|date|positive|UUID|email)|one of|at (?:least|most)|in the correct|unique|positive|integer|string|number|boolean))/i;
const FIELD_WORDS = /^\p{L}[\p{L}\p{N}_.[\]-]{0,60}(?: \p{L}[\p{L}\p{N}_.-]{0,30}){0,4}$/u;
/** Behind these stands what a client was told, as a text. */
const TEXT_KEY =
  /(?:^|[^\p{L}])(?:details?|message|msg|desc|description|error|err|exception) ?= ?$|(?:^|[^\p{L}])(?:details?|error|exception|desc|status: \w+, message) ?: ?$/iu;

/**
 * What is done with a quoted part of a message: `keep` a name, read it as a `text` of its own, or (`undefined`) take it for a value.
 * `before` and `after` are what stands around it, a few dozen characters.
 */
export function meaningOf(before: string, quoted: string, after: string): 'keep' | 'text' | undefined {
  if (isMeaning(quoted)) return 'keep';
  if (TEXT_KEY.test(before) && isSentence(quoted)) return 'text';
  if (SOMEBODY.test(before) && !CALLED.test(before)) return undefined;
  if (VALIDATED.test(after) && FIELD_WORDS.test(quoted) && isName(quoted.replaceAll(' ', ''))) return 'keep';
  if (STRANGE.test(before) || DATA_CODE.test(before)) return undefined;
  if (CALLED.test(before)) {
    const isCode = /code[\s:=(]{0,3}$/i.test(before) && /^-?\d{1,6}$/.test(quoted);
    const isMethod = /method(?: not found)?[\s:=(]{0,3}$/i.test(before) && /^[\w.+$`<>()[\], &*]{1,200}$/.test(quoted);
    return isCode || isMethod || isName(quoted) ? 'keep' : undefined;
  }
  return CALLED_AFTER.test(after) && isName(quoted) ? 'keep' : undefined;
}

/** Particles of names are no sign of a sentence. */
const PARTICLE = /^(?:van|der|den|de|del|della|di|da|do|dos|du|la|le|von|zu|zur|af|av|bin|ibn|al|el|ter|ten|y|e)$/;

/** Whether a text is told in words rather than being a name: of somebody, or of something. */
export function isSentence(text: string): boolean {
  const words = text.split(/\s+/, 60).filter((word) => /\p{L}/u.test(word));
  const rest = words.slice(1);
  const small = rest.filter((word) => /^[("'<[]?\p{Ll}/u.test(word) && !PARTICLE.test(word));
  return small.length > 0 && small.length * 2 >= rest.length;
}

/** Names of `name=value` pairs whose value tells what went wrong. */
const MEANING_KEYS = new Set(
  (
    'code status statuscode grpcstatus grpc_status errorcode error_code status_code response_code responsecode reason state type kind class ' +
    'exception level table column queue topic entity collection constraint method operation field property errno sqlcode'
  ).split(' '),
);
const TEXT_KEYS = new Set('desc description detail details message msg error err exception cause'.split(' '));

/** The same for `name=value`. */
export function meaningOfPair(name: string, value: string): 'keep' | 'text' | undefined {
  const key = (name.split('.').at(-1) ?? '').toLowerCase();
  if (TEXT_KEYS.has(key)) return 'text';
  if (!MEANING_KEYS.has(key)) return undefined;
  return isMeaning(value) || isName(value) || /^-?\d{1,6}$/.test(value) ? 'keep' : undefined;
}

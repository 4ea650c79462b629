/**
 * Forty causes as programs tell them, with values of many shapes: what grouping is measured with. Several differ in one word that
 * matters; within one, texts differ in everything that does not.
 */
import type { Evidence } from '../../shared/classify/evidence.ts';
import { Dice } from './dice.ts';

const HEX = '0123456789abcdef';
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Random values, as they stand in messages. */
class Values {
  readonly dice: Dice;

  constructor(dice: Dice) {
    this.dice = dice;
  }

  #text(alphabet: string, length: number): string {
    return Array.from({ length }, () => alphabet[this.dice.int(0, alphabet.length - 1)]).join('');
  }

  guid(): string {
    const hex = (length: number) => this.#text(HEX, length);
    const guid = `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
    return this.dice.pick([guid, guid, guid.toUpperCase(), `{${guid}}`, guid.replaceAll('-', '')]);
  }

  id(): string {
    return this.dice.pick<() => string>([
      () => this.guid(),
      () => `01${this.#text(CROCKFORD, 24)}`,
      () => this.#text(BASE64, 21),
      () => this.#text(HEX, this.dice.pick([8, 12, 24, 40])),
      () => String(this.dice.int(1, 10 ** this.dice.int(1, 12))),
      () => `ORD-${this.dice.int(2019, 2026)}-${String(this.dice.int(1, 99_999)).padStart(5, '0')}`,
      () => `order_${this.#text(HEX, 6)}${this.dice.int(0, 9)}`,
      () => `cus_${this.#text(BASE64, 13)}${this.dice.int(0, 9)}`,
    ])();
  }

  int(max = 100_000): number {
    return this.dice.int(0, max);
  }

  amount(): string {
    const euros = this.dice.int(0, 999);
    const cents = String(this.dice.int(0, 99)).padStart(2, '0');
    const currency = this.dice.pick(['EUR', 'USD', 'GBP', 'CHF']);
    return this.dice.pick([
      `${euros}.${cents} ${currency}`,
      `${currency} 1,${euros + 100}.${cents}`,
      `€${euros}.${cents}`,
      `-${euros}`,
      `${euros},${cents} ${currency}`,
    ]);
  }

  name(): string {
    const first = this.dice.pick(['Ada', 'Grace', 'José', 'Zoë', 'Li', 'Mary Ann', 'Seán']);
    const last = this.dice.pick([
      'Lovelace',
      "O'Brien",
      'Nguyễn',
      'Müller-Lüdenscheidt',
      'García Márquez',
      '王',
      'Smith',
    ]);
    return `${first} ${last}`;
  }

  quoted(text: string = this.name()): string {
    return this.dice.pick([`'${text}'`, `"${text}"`, `“${text}”`, `\`${text}\``]);
  }

  host(): string {
    return this.dice.pick<() => string>([
      () => `payments-${this.#text(HEX, 8)}-${this.#text(HEX, 5)}.svc.cluster.local`,
      () => `node${this.dice.int(1, 99)}.shop.example.com`,
      () => `10.${this.dice.int(0, 255)}.${this.dice.int(0, 255)}.${this.dice.int(1, 254)}`,
      () => `fd00::${this.#text(HEX, 4)}:${this.#text(HEX, 3)}`,
      () => 'localhost',
    ])();
  }

  url(): string {
    return `${this.dice.pick(['https', 'http'])}://${this.host()}:${this.dice.int(80, 9999)}/v1/orders/${this.id()}?page=${this.int(9)}`;
  }

  email(): string {
    return `${this.dice.pick(['ada', 'grace.hopper', 'li+shop'])}${this.int(99)}@${this.dice.pick(['example.org', 'mail.example.co.uk'])}`;
  }

  duration(): string {
    const n = this.dice.int(1, 59);
    return this.dice.pick([
      `${n} seconds`,
      `${n}s`,
      `${n * 1000}ms`,
      `${n * 1000} ms`,
      `00:00:${String(n).padStart(2, '0')}`,
      `00:00:${String(n).padStart(2, '0')}.0000000`,
      `PT${n}S`,
      `${n}.5 minutes`,
      '1 minute',
    ]);
  }

  time(): string {
    const date = new Date(
      Date.UTC(
        2026,
        this.dice.int(0, 11),
        this.dice.int(1, 28),
        this.dice.int(0, 23),
        this.dice.int(0, 59),
        this.dice.int(0, 59),
      ),
    );
    const iso = date.toISOString();
    return this.dice.pick([
      iso,
      iso.replace('Z', '+02:00'),
      iso.slice(0, 19).replace('T', ' '),
      date.toUTCString(),
      `${date.getUTCMonth() + 1}/${date.getUTCDate()}/2026 4:05:06 PM`,
      iso.slice(0, 10),
    ]);
  }

  path(): string {
    return this.dice.pick<() => string>([
      () => `/var/app/${this.#text(HEX, 6)}/invoice-${this.int()}.pdf`,
      () => `C:\\data\\${this.#text(HEX, 6)}\\invoice-${this.int()}.pdf`,
      () => `./out/${this.int()}.json`,
    ])();
  }

  line(): number {
    return this.dice.int(10, 900);
  }
}

type Make = (v: Values) => Evidence;

const dotnet = (v: Values, call: string) =>
  `at ${call}(OrderPlaced order, CancellationToken token) in /src/${v.path().slice(-9)}.cs:line ${v.line()}`;
const java = (v: Values, call: string, file: string) => `at ${call}(${file}.java:${v.line()})`;
const node = (v: Values, call: string) =>
  `at ${v.dice.pick(['', 'async '])}${call} (/srv/app/dist/orders.js:${v.line()}:${v.int(80)})`;
const python = (v: Values, file: string, call: string) =>
  `File "/opt/${v.int(9)}/shop/${file}.py", line ${v.line()}, in ${call}`;

/** The causes. Each is one, however it is told. */
export const CAUSES: readonly Make[] = [
  // .NET
  (v) => ({
    exceptionType: 'System.TimeoutException',
    exceptionMessage: `The payment API did not answer within ${v.duration()} (request ${v.id()})`,
    frame: dotnet(v, v.dice.pick(['Shop.Billing.Consumer.Consume', 'Shop.Refunds.Handler.Handle'])),
  }),
  (v) => ({
    exceptionType: 'System.TimeoutException',
    exceptionMessage: `The inventory API did not answer within ${v.duration()} (request ${v.id()})`,
    frame: dotnet(v, 'Shop.Billing.Consumer.Consume'),
  }),
  (v) => ({
    exceptionType: 'System.NullReferenceException',
    exceptionMessage: 'Object reference not set to an instance of an object.',
    frame: dotnet(v, `Shop.Orders.OrderHandler.<Handle>d__${v.int(20)}.MoveNext`),
  }),
  (v) => ({
    exceptionType: 'System.NullReferenceException',
    exceptionMessage: 'Object reference not set to an instance of an object.',
    frame: dotnet(v, `Shop.Orders.OrderHandler.<Price>d__${v.int(20)}.MoveNext`),
  }),
  (v) => ({
    exceptionType: 'MassTransit.ConsumerException',
    causeType: v.dice.pick(['System.InvalidOperationException', 'InvalidOperationException']),
    causeMessage: `Order ${v.id()} is already paid`,
    frame: dotnet(v, 'Shop.Orders.Pay.Execute'),
  }),
  (v) => ({
    exceptionType: 'System.InvalidOperationException',
    exceptionMessage: `Order ${v.id()} is already shipped`,
    frame: dotnet(v, 'Shop.Orders.Pay.Execute'),
  }),
  (v) => ({
    exceptionType: 'System.Text.Json.JsonException',
    exceptionMessage: `The JSON value could not be converted to System.DateTime. Path: $.placedAt | LineNumber: ${v.int(9)} | BytePositionInLine: ${v.int(900)}.`,
  }),
  (v) => ({
    exceptionType: 'System.Text.Json.JsonException',
    exceptionMessage: `The JSON value could not be converted to System.Int32. Path: $.placedAt | LineNumber: ${v.int(9)} | BytePositionInLine: ${v.int(900)}.`,
  }),
  (v) => ({
    exceptionType: 'Microsoft.Data.SqlClient.SqlException',
    exceptionMessage: `Transaction (Process ID ${v.int(300)}) was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.`,
    frame: dotnet(v, 'Shop.Data.Repository.Save'),
  }),
  (v) => ({
    exceptionType: 'Microsoft.Data.SqlClient.SqlException',
    exceptionMessage: `Violation of PRIMARY KEY constraint 'PK_Orders'. Cannot insert duplicate key in object 'dbo.Orders'. The duplicate key value is (${v.id()}).`,
    frame: dotnet(v, 'Shop.Data.Repository.Save'),
  }),
  (v) => ({
    exceptionType: 'System.Net.Http.HttpRequestException',
    exceptionMessage: 'Response status code does not indicate success: 503 (Service Unavailable).',
    description: `at ${v.time()}`,
  }),
  (v) => ({
    exceptionType: 'System.Net.Http.HttpRequestException',
    exceptionMessage: 'Response status code does not indicate success: 404 (Not Found).',
    description: `at ${v.time()}`,
  }),
  (v) => ({
    exceptionType: 'Shop.CustomerNotFoundException',
    exceptionMessage: `Customer ${v.quoted()} with e-mail ${v.email()} was not found`,
    frame: dotnet(v, 'Shop.Crm.Find'),
  }),
  (v) => ({
    exceptionType: 'Shop.CustomerBlockedException',
    exceptionMessage: `Customer ${v.quoted()} with e-mail ${v.email()} was blocked`,
    frame: dotnet(v, 'Shop.Crm.Find'),
  }),
  // Java
  (v) => ({
    exceptionType: 'org.springframework.jms.listener.ListenerExecutionFailedException',
    causeType: 'java.net.SocketTimeoutException',
    causeMessage: `Read timed out after ${v.duration()} from ${v.host()}:${v.int(9999)}`,
    frame: java(v, 'com.shop.pay.Client.charge', 'Client'),
  }),
  (v) => ({
    causeType: 'java.net.SocketTimeoutException',
    causeMessage: `Connect timed out after ${v.duration()} to ${v.host()}:${v.int(9999)}`,
    frame: java(v, 'com.shop.pay.Client.charge', 'Client'),
  }),
  (v) => ({
    exceptionType: 'java.lang.IllegalArgumentException',
    exceptionMessage: `Amount ${v.amount()} exceeds the credit limit of account ${v.id()}`,
    frame: java(v, 'com.shop.credit.Check.apply', 'Check'),
  }),
  (v) => ({
    exceptionType: 'java.lang.IllegalArgumentException',
    exceptionMessage: `Amount ${v.amount()} exceeds the daily limit of account ${v.id()}`,
    frame: java(v, 'com.shop.credit.Check.apply', 'Check'),
  }),
  (v) => ({
    exceptionType: 'java.lang.IllegalStateException',
    exceptionMessage: `Order{id=${v.id()}, customer=${v.name().replaceAll(' ', '_')}, total=${v.int()}} is closed`,
    frame: java(v, 'com.shop.order.Order.add', 'Order'),
  }),
  (v) => ({
    exceptionType: 'org.hibernate.StaleObjectStateException',
    exceptionMessage: `Row was updated or deleted by another transaction : [com.shop.order.Order#${v.id()}]`,
  }),
  (v) => ({
    exceptionType: 'com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException',
    exceptionMessage: `Unrecognized field "${v.dice.pick(['vat', 'taxes', 'net'])}" (class com.shop.OrderPlaced), not marked as ignorable\n at [Source: (String)"{"id":"${v.id()}"}"; line: ${v.line()}]`,
  }),
  // Node
  (v) => ({
    exceptionType: 'TypeError',
    exceptionMessage: "Cannot read properties of undefined (reading 'currency')",
    frame: node(v, 'priceOrder'),
  }),
  (v) => ({
    exceptionType: 'TypeError',
    exceptionMessage: "Cannot read properties of undefined (reading 'street')",
    frame: node(v, 'shipOrder'),
  }),
  (v) => ({
    exceptionType: 'Error',
    exceptionMessage: `connect ECONNREFUSED ${v.host()}:${v.int(9999)}`,
    frame: node(v, 'TCPConnectWrap.afterConnect'),
  }),
  (v) => ({
    exceptionType: 'Error',
    exceptionMessage: `connect ETIMEDOUT ${v.host()}:${v.int(9999)}`,
    frame: node(v, 'TCPConnectWrap.afterConnect'),
  }),
  (v) => ({
    exceptionType: 'AxiosError',
    exceptionMessage: 'Request failed with status code 429',
    frame: node(v, v.dice.pick(['charge', 'refund'])),
  }),
  (v) => ({
    exceptionType: 'AxiosError',
    exceptionMessage: 'Request failed with status code 400',
    frame: node(v, 'charge'),
  }),
  (v) => ({
    exceptionType: 'SyntaxError',
    exceptionMessage: `Unexpected token ${v.quoted('<')}, ${v.quoted('<html>')}... is not valid JSON at position ${v.int()}`,
  }),
  // Python
  (v) => ({
    exceptionType: v.dice.pick(['KeyError', 'builtins.KeyError']),
    exceptionMessage: "'vat_rate'",
    frame: python(v, 'tax', 'rate_of'),
  }),
  (v) => ({
    exceptionType: 'ValueError',
    exceptionMessage: `time data ${v.quoted(v.time())} does not match format '%Y-%m-%d'`,
    frame: python(v, 'dates', 'parse'),
  }),
  (v) => ({
    reason: 'ProcessingFailed',
    description: `Traceback (most recent call last):\n  ${python(v, 'app', 'run')}\n    main()\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(host='${v.host()}', port=443): Max retries exceeded`,
  }),
  (v) => ({
    exceptionType: 'OSError',
    exceptionMessage: `[Errno 28] No space left on device: ${v.quoted(v.path())}`,
    frame: python(v, 'files', 'save'),
  }),
  (v) => ({
    exceptionType: 'OSError',
    exceptionMessage: `[Errno 13] Permission denied: ${v.quoted(v.path())}`,
    frame: python(v, 'files', 'save'),
  }),
  // PHP
  (v) => ({
    exceptionType: 'App\\Exceptions\\GatewayTimeout',
    exceptionMessage: `Payment gateway timeout for ${v.url()}`,
    frame: `#0 /var/www/src/Pay.php(${v.line()}): App\\Pay->charge()`,
  }),
  (v) => ({
    exceptionType: 'PDOException',
    exceptionMessage: `SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry '${v.id()}' for key 'orders.PRIMARY'`,
    frame: `#0 /var/www/src/Db.php(${v.line()}): App\\Db->insert()`,
  }),
  // Reasons without an exception
  (v) => ({
    reason: 'MaxDeliveryCountExceeded',
    description: `Message could not be consumed after ${v.int(20)} delivery attempts.`,
  }),
  (v) => ({ reason: 'TTLExpiredException', description: `The message expired and was dead lettered at ${v.time()}.` }),
  (v) => ({
    reason: 'UnsupportedCurrency',
    description: `Currency ${v.quoted(v.dice.pick(['XXX', 'XTS', 'XBT']))} of order ${v.id()} is not supported`,
  }),
  (v) => ({
    reason: 'UnsupportedCountry',
    description: `Country ${v.quoted(v.dice.pick(['XX', 'ZZ', 'AA']))} of order ${v.id()} is not supported`,
  }),
  (v) => ({
    reason: v.dice.pick(['InvalidOrder', 'invalidorder ']),
    description: `Invoice ${v.path()} of ${v.time()} for ${v.amount()}: ${v.int(40)} items, payload {"id":"${v.id()}","to":"${v.email()}"}`,
  }),
];

/** `count` pieces of evidence, each with the number of its cause. The same seed gives the same. */
export function manyDeaths(count: number, seed: number): { readonly cause: number; readonly evidence: Evidence }[] {
  const values = new Values(new Dice(seed));
  return Array.from({ length: count }, () => {
    const cause = values.dice.int(0, CAUSES.length - 1);
    return { cause, evidence: (CAUSES[cause] as Make)(values) };
  });
}

/**
 * Pairwise precision and recall: of the pairs that are in one group the share that is of one cause, and of the pairs of one
 * cause the share that is in one group.
 */
export function pairwise(letters: readonly { cause: number; group: string }[]): { precision: number; recall: number } {
  const pairs = (keys: readonly string[]) => {
    const counts = new Map<string, number>();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return [...counts.values()].reduce((sum, n) => sum + (n * (n - 1)) / 2, 0);
  };
  const both = pairs(letters.map(({ cause, group }) => `${cause} ${group}`));
  return {
    precision: both / pairs(letters.map(({ group }) => group)),
    recall: both / pairs(letters.map(({ cause }) => String(cause))),
  };
}

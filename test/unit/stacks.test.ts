import { describe, expect, test } from 'vitest';
import { CUT_TRACE, findException, readException } from '../../shared/classify/exceptions.ts';
import { ownFrame } from '../../shared/classify/frames.ts';

describe('the first frame of its own', () => {
  const frames: Readonly<Record<string, readonly [string, string | undefined]>> = {
    '.NET behind frames of the runtime': [
      '   at System.Foo.Bar()\r\n   at Shop.Pay.Client.Charge(Order o) in /src/Client.cs:line 42\r\n   at Shop.Other.Run()',
      'Shop.Pay.Client.Charge (Client.cs:42)',
    ],
    '.NET without files': ['   at Shop.Pay.Client.Charge(Order o)', 'Shop.Pay.Client.Charge'],
    '.NET with the state machine of an async method': [
      '   at Shop.Pay.Client.<Charge>d__5.MoveNext() in C:\\a b\\Client.cs:line 7',
      'Shop.Pay.Client.Charge (Client.cs:7)',
    ],
    '.NET with a lambda': [
      '   at Shop.Pay.Client.<>c__DisplayClass3_0.<<Charge>b__0>d.MoveNext()',
      'Shop.Pay.Client.Charge',
    ],
    'Java with the innermost exception last': [
      'com.acme.Outer: no\n\tat com.acme.Service.run(Service.java:10)\nCaused by: java.sql.SQLException: x\n\tat org.postgresql.Driver.go(Driver.java:1)\n\tat com.acme.Repo.find(Repo.java:99)\n\t... 12 more',
      'com.acme.Repo.find (Repo.java:99)',
    ],
    'Java with modules and loaders': [
      '\tat java.base/java.util.List.get(List.java:1)\n\tat app//com.acme.Orders.first(Orders.kt:3)',
      'com.acme.Orders.first (Orders.kt:3)',
    ],
    'Java where only the outer exception has one': [
      'com.acme.Outer: no\n\tat com.acme.Service.run(Service.java:10)\nCaused by: java.io.IOException: x\n\tat java.io.File.read(File.java:1)',
      'com.acme.Service.run (Service.java:10)',
    ],
    'Node behind dependencies': [
      'Error: no\n    at Object.f (/app/node_modules/x/i.js:1:2)\n    at node:internal/x:1:2\n    at async Worker.handle (file:///app/dist/worker.js:31:7)',
      'Worker.handle (worker.js:31)',
    ],
    'Node without a name': ['Error: no\n    at /app/src/a.js:10:5', 'a.js:10'],
    'Node on Windows': ['Error: no\n    at run (C:\\app\\src\\a.js:10:5)', 'run (a.js:10)'],
    'Python, innermost last': [
      'Traceback (most recent call last):\n  File "/app/main.py", line 3, in main\n  File "/app/pay.py", line 9, in charge\n  File "/usr/lib/python3.12/site-packages/x.py", line 1, in f\nKeyError: 1',
      'charge (pay.py:9)',
    ],
    'PHP behind vendors': [
      '#0 /app/vendor/x/y.php(3): f()\n#1 [internal function]: g()\n#2 /app/src/Handler.php(42): App\\Handler->handle(Object)\n#3 {main}',
      'App\\Handler->handle (Handler.php:42)',
    ],
    'none but those of frameworks': ['   at MassTransit.X.Y()\n   at System.Z()', undefined],
    'no stack': ['something went wrong at noon (twice)', undefined],
    nothing: ['', undefined],
  };
  test.each(Object.entries(frames))('%s', (_name, [stack, frame]) => {
    expect(ownFrame(stack)).toBe(frame);
  });
});

describe('a printed exception', () => {
  const printed: Readonly<Record<string, readonly [string, object]>> = {
    'of one line': ['System.Exception: no', { exceptionType: 'System.Exception', exceptionMessage: 'no' }],
    'without a message': ['KeyError', { exceptionType: 'KeyError' }],
    'with a code behind its type': [
      'Microsoft.Data.SqlClient.SqlException (0x80131904): deadlock',
      { exceptionType: 'Microsoft.Data.SqlClient.SqlException', exceptionMessage: 'deadlock' },
    ],
    'with an error code of Node': [
      'TypeError [ERR_INVALID_ARG_TYPE]: no',
      { exceptionType: 'TypeError', exceptionMessage: 'no' },
    ],
    'of .NET Framework, all in one line': [
      'Outer.AException: a ---> Inner.BException: b ---> Core.CException: c',
      { exceptionType: 'Outer.AException', exceptionMessage: 'a', causeType: 'Core.CException', causeMessage: 'c' },
    ],
    'of Java': [
      'a.OuterException: a\n\tat x.Y.z(Y.java:1)\nCaused by: b.MiddleException: b\nCaused by: c.Innermost: c',
      { exceptionType: 'a.OuterException', exceptionMessage: 'a', causeType: 'c.Innermost', causeMessage: 'c' },
    ],
    'of Node with a cause': [
      'Error: a\n    at f (/a.js:1:1) {\n  [cause]: RangeError: b\n      at g (/b.js:1:1)\n}',
      { exceptionType: 'Error', exceptionMessage: 'a', causeType: 'RangeError', causeMessage: 'b' },
    ],
    'of PHP with a previous one': [
      'PDOException: a in /app/x.php:3\nStack trace:\n#0 {main}\n\nNext App\\Oops: b in /app/y.php:4\nStack trace:\n#0 {main}',
      { exceptionType: 'App\\Oops', exceptionMessage: 'b', causeType: 'PDOException', causeMessage: 'a' },
    ],
    'repeated as its own cause': [
      'A.AException: a ---> A.AException: a',
      { exceptionType: 'A.AException', exceptionMessage: 'a' },
    ],
    'that is none': ['Note: System.Exception: no', {}],
    'that is a sentence': ['The customer has no e-mail address', {}],
  };
  test.each(Object.entries(printed))('%s', (_name, [text, expected]) => {
    expect(readException(text)).toEqual(expected);
  });

  test('cut before its exception says so, and its last line of code is taken for nothing', () => {
    const cut =
      'Traceback (most recent call last):\n  File "/app/pay.py", line 9, in charge\n    return client.post(order: Order = None';
    expect(readException(cut)).toEqual({ exceptionMessage: CUT_TRACE });
    expect(findException(`KeyError: 'x'\n${cut}`)).toEqual({ exceptionType: 'KeyError', exceptionMessage: "'x'" });
    // The type itself is cut.
    expect(readException(`${cut}\nrequests.exceptions.ReadTi`)).toEqual({ exceptionMessage: CUT_TRACE });
    const handled = 'Traceback (most recent call last):\n  File "/app/a.py", line 1, in a\nKeyError: 1';
    expect(
      readException(`${handled}\n\nDuring handling of the above exception, another exception occurred:\n\n${cut}`),
    ).toEqual({
      exceptionMessage: CUT_TRACE,
    });
  });

  test('begins in no indented line', () => {
    expect(findException('it broke\n    raise TimeoutError: no\n    System.TimeoutException: no')).toEqual({});
  });

  test('is found behind other words', () => {
    expect(findException('3 unhandled exceptions: 1/2/2026 3:04:05 PM +00:00: A.BException: c: d')).toEqual({
      exceptionType: 'A.BException',
      exceptionMessage: 'c: d',
    });
    expect(findException('nothing to see: here: at: all')).toEqual({});
  });
});

test('a stack of 64 KB is read up to its cap, and nothing behind it', () => {
  const filler = '   at System.Threading.Tasks.Task.Execute()\n';
  const own = '   at Shop.Pay.Client.Charge()';
  expect(ownFrame(`${filler.repeat(100)}${own}`)).toBe('Shop.Pay.Client.Charge');
  expect(ownFrame(`${filler.repeat(1500)}${own}`)).toBeUndefined();
});

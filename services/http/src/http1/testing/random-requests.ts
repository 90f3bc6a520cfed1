import * as fc from 'fast-check'

const TOKEN = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'HEAD')
const TARGET = fc.constantFrom(
  '/',
  '/v2/models/m?x=1',
  '*',
  'http://h:1/a',
  '/a%00?b#c',
  "/~_-.!$&'()",
)
const VERSION = fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0')
const BLANK = fc.constantFrom(' ', ' ', '', '\t', '  ')
const NAME = fc.constantFrom(
  'Host',
  'x',
  'X-Y',
  'Cookie',
  'Accept',
  'set-cookie',
  'a!#$%&*+.^_`|~',
  'constructor',
  '__proto__',
)
const VALUE = fc.constantFrom('', 'h', 'a b', 'a, b', 'caf\xe9', 'x'.repeat(300), '"q\\"', 'a\tb')
const BODY = fc.constantFrom(
  '',
  'x',
  'hello',
  '\r\n',
  '0\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  '\0\xff',
  'y'.repeat(500),
)
const EXTENSION = fc.constantFrom('', '', '', ';a', ';a=b', ';a="b c";d')

/** A chunk as the tokens of its text. */
function toChunk([body, extension, isUpper]: [string, string, boolean]): readonly string[] {
  const size = body.length.toString(16)
  return [isUpper ? size.toUpperCase() : size, extension, '\r\n', body, '\r\n']
}

const FIELD = fc
  .tuple(NAME, BLANK, VALUE, fc.constantFrom('', '', ' ', '\t'))
  .map(([name, blank, value, after]) => [name, ':', blank, value, after, '\r\n'])

const LENGTH_BODY = BODY.map((body) => ({
  field: ['Content-Length', ':', ' ', String(body.length), '\r\n'],
  rest: [body],
}))
const CHUNKED_BODY = fc
  .tuple(
    fc.array(
      fc.tuple(
        BODY.filter((body) => body !== ''),
        EXTENSION,
        fc.boolean(),
      ),
      { maxLength: 3 },
    ),
    fc.constantFrom('chunked', 'Chunked'),
    fc.constantFrom<readonly string[]>([], ['x', ':', ' ', 'y', '\r\n']),
  )
  .map(([chunks, coding, trailer]) => ({
    field: ['Transfer-Encoding', ':', ' ', coding, '\r\n'],
    rest: [...chunks.flatMap(toChunk), '0', '', '\r\n', ...trailer, '\r\n'],
  }))
const NO_BODY = fc.constant<{ field: string[]; rest: string[] }>({ field: [], rest: [] })

/** Tokens of a request that HTTP/1.1 allows, and that does not end its connection. */
const VALID_REQUEST = fc
  .tuple(
    fc.constantFrom('', '', '', '\r\n'),
    TOKEN,
    TARGET,
    fc.array(FIELD, { maxLength: 4 }),
    fc.oneof(NO_BODY, LENGTH_BODY, CHUNKED_BODY),
    fc.nat(),
  )
  .map(([before, method, target, fields, { field, rest }, at]) => {
    const all = fields.toSpliced(at % (fields.length + 1), 0, field)
    return [before, method, ' ', target, ' ', 'HTTP/1.1', '\r\n', ...all.flat(), '\r\n', ...rest]
  })

/** Several requests that HTTP/1.1 allows, one behind the other. */
export const VALID_REQUESTS = fc.array(VALID_REQUEST, { minLength: 1, maxLength: 4 })

const ODD = fc.oneof(
  fc.constantFrom(
    '\n',
    '\r',
    '\r\n',
    '\r\n ',
    '\r\n\t',
    '\r\n\r\n',
    '\n\n',
    '\r\r\n',
    ' ',
    '\t',
    '  ',
    '\v',
    '\f',
    '\0',
    '\x7f',
    '\x80',
    '\xff',
    '\xa0',
    '\x1f',
  ),
  fc.constantFrom(
    ':',
    ';',
    ',',
    '=',
    '"',
    '\\',
    '(',
    '#',
    '%',
    '@',
    'x',
    '0',
    '00',
    '-1',
    '+1',
    '0x1',
    '1_0',
    '1 ',
    '1e1',
    '5',
    'ffffffffffffffff',
    '10000000000000000',
    '99999999999999999999',
  ),
  fc.constantFrom(
    'HTTP/1.0',
    'HTTP/0.9',
    'HTTP/2.0',
    'HTTP/1.2',
    'http/1.1',
    'HTTP/1.',
    'HTTP/11',
    'HTTP/1.10',
    'ICE/1.0',
    'RTSP/1.0',
    'HTTP/1.1 ',
  ),
  fc.constantFrom(
    'get',
    'GXT',
    'CONNECT',
    'PRI',
    'M-SEARCH',
    'SOURCE',
    'a',
    'a/b',
    'h:1',
    'http:',
    'http:/',
    'http://',
    'http://@h@/',
    'x-y://h',
    '//',
    '?',
    '/\xff',
    '/ ',
    '/\x7f',
    'http://[::1]/',
    'http://h\xff/',
    'http://h?q',
    '1://h',
    '*/',
    '/#a#b',
    '/?a?b',
  ),
  fc.constantFrom(
    'Content-Length: 0\r\n',
    'Content-Length: 5\r\n',
    'content-length:\r\n',
    'Content-Length: 5, 5\r\n',
    'Content-Length: 5 5\r\n',
    'Content-Length : 5\r\n',
    'Content-Length: 005\r\n',
    'Content_Length: 5\r\n',
    'Content-Length: 5,\r\n',
  ),
  fc.constantFrom(
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: gzip, chunked\r\n',
    'Transfer-Encoding: chunked, gzip\r\n',
    'Transfer-Encoding: identity\r\n',
    'Transfer-Encoding:\r\n',
    'Transfer-Encoding: xchunked\r\n',
    'Transfer-Encoding: chunked \r\n',
    'Transfer-Encoding:\tchunked\r\n',
    'Transfer-Encoding\t: chunked\r\n',
    'transfer-encoding: "chunked"\r\n',
    'Transfer-Encoding: chunked;a\r\n',
  ),
  fc.constantFrom(
    'Connection: close\r\n',
    'Connection: keep-alive\r\n',
    'Connection: keep-alive, close\r\n',
    'Connection: Upgrade\r\nUpgrade: h2c\r\n',
    'Connection: closed\r\n',
    'Connection: x,\tclose\r\n',
    'Connection:\xa0close\r\n',
    'Connection:\r\n',
    'Connection: ,close\r\n',
  ),
  fc.constantFrom(
    'Expect: 100-continue\r\n',
    'Expect: 200\r\n',
    ': x\r\n',
    'x\r\n',
    ' x: y\r\n',
    'x : y\r\n',
    'x\0: y\r\n',
    'x: \0\r\n',
    'x: y\rz\r\n',
    'x: \x7f\r\n',
    'x\xe9: y\r\n',
    'x: \x01\r\n',
    'x:\r\n y\r\n',
    '"x": y\r\n',
    'x(: y\r\n',
    'x: y\n',
  ),
  fc.constantFrom(
    '0\r\n\r\n',
    '5;\r\nhello\r\n',
    '5 ;a\r\nhello\r\n',
    '5\n',
    '5;a="\r\n',
    ';a="b\\"c"',
    ';a=',
    ';=a',
    ';;',
    '; a',
    ';a b',
    ';a=\x01',
    ';a="\x7f"',
    ';a\t',
    ';\xff',
    ';a=\xff',
    ';a="\xff"',
    ';a=b"c"',
    ';a="b"c',
    'g',
    '',
  ),
)

/** One mutation: the place of its token, the kind of the mutation, and the text that it puts in. */
const CHANGE = fc.tuple(
  fc.nat(),
  fc.constantFrom('replace', 'insert', 'append', 'drop', 'repeat', 'byte'),
  ODD,
)

function change(
  tokens: readonly string[],
  [nat, kind, odd]: readonly [number, string, string],
): string[] {
  const at = nat % tokens.length
  const had = tokens[at] ?? ''
  if (kind === 'replace') return tokens.with(at, odd)
  if (kind === 'insert') return tokens.toSpliced(at, 0, odd)
  if (kind === 'append') return tokens.with(at, `${had}${odd}`)
  if (kind === 'drop') return tokens.toSpliced(at, 1)
  if (kind === 'repeat') return tokens.toSpliced(at, 0, had)
  const middle = nat % (had.length + 1)
  return tokens.with(at, `${had.slice(0, middle)}${odd}${had.slice(middle)}`)
}

const MUTATED_REQUEST = fc
  .tuple(VALID_REQUEST, VERSION, fc.array(CHANGE, { maxLength: 3 }))
  .map(([tokens, version, changes]) => changes.reduce(change, tokens.with(5, version)))

/** Texts of requests, some of which break HTTP/1.1. */
export const MUTATED_REQUESTS = fc
  .array(MUTATED_REQUEST, { minLength: 1, maxLength: 4 })
  .map((requests) => requests.flat().join(''))

/** Places at which a text is cut. */
export const CUTS = fc.array(fc.nat(), { maxLength: 6 })

/** Cuts a text. @param places - taken modulo its length. */
export function cut(text: string, places: readonly number[]): string[] {
  const sorted = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted(
    (a, b) => a - b,
  )
  return [0, ...sorted]
    .map((begin, i) => text.slice(begin, sorted[i]))
    .filter((piece) => piece !== '')
}

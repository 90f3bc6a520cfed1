import type { Random } from '../../attacks/random.ts'
import type { Case } from '../case.ts'

const STRINGS = [
  '"a"',
  "'a'",
  '"a" "b"',
  '"a"\n\'b\'',
  '"a"#c\n"b"',
  '"a\nb"',
  '"a\\\nb"',
  '"a\rb"',
  '"a\r\nb"',
  '"a\tb\u0001\u007f"',
  '"a\0b"',
  '"a',
  'a',
  '`a`',
  '1',
  '"" ""',
  '["a"]',
  '["a","b"]',
  '"a",',
  '"a";;',
  '"a"/*c*/"b"',
  ...String.raw`"\n" "\x41" "\x4" "\x" "\xG" "\X41" "\101" "\1" "\501" "\400" "\08" "\u00e4" "\u12" "\U0001F600" "\ud83d\ude00" "\q" "\?" "\'" "\\" "\" "\a\b\f\v\r\t" "\e" "\xc3\xa4" "\x414"`.split(
    ' ',
  ),
] as const
const INTEGERS =
  '4 -4 +4 04 08 0x4 0X4 0x 0xg 4.0 4f 4e0 1e1 -0 00 017 -017 2147483647 2147483648 0x80000000 "4" true inf 4u [4] [4,5] [] 4; 4, (4) 4_0 0b1 0o7 4. .4 4a {4} <4> 4: 4#x 4//x'.split(
    ' ',
  )
const BOOLEANS =
  'true false True False TRUE t f 1 0 2 -1 yes on 01 00 1.0 0x1 0x0 "true" [true] tRue'.split(' ')
const DIMS =
  '[2,3] [2;3] [2,3,] [,2] [2,,3] [0x2,3] [02,3] [2,+3] [[2,3]] [2,3 2,3] "2" [2.0] [2e0,3]'.split(
    ' ',
  )
const TYPES = 'TYPE_FP32 "TYPE_FP32" 11 0xB 013 11.0 FP32 type_fp32 [TYPE_FP32] true'.split(' ')
const LINES = [
  'model_transaction_policy { }',
  'model_transaction_policy: < decoupled: false >',
  'model_transaction_policy < }',
  'model_transaction_policy {} model_transaction_policy {}',
  'model_transaction_policy [ {} ]',
  'model_transaction_policy: 1',
  'model_transaction_policy { decoupled: false decoupled: false }',
  'model_transaction_policy { decoupled: false; }',
  'model_transaction_policy { , }',
  'max_batch_size: 0 max_batch_size: 0',
  'default_model_filename: "a" default_model_filename: "b"',
  'metric_tags { key: "a" value: "b" }',
  'metric_tags: [ { key: "a" value: "b" }, { key: "a" value: "c" } ]',
  'metric_tags { key: "a" key: "b" }',
  'metric_tags { }',
  'metric_tags { "a": "b" }',
  'metric_tags: []',
  'input [ ]',
  'input: []',
  'input [ {}, ]',
  'version_policy { latest { num_versions: 1 } all { } }',
  'version_policy: { all: {} }',
  'nope: 1',
  'nope { a: 1 }',
  '1: "x"',
  '"name": "x"',
  '[type.googleapis.com/foo] { }',
  'Name: "x"',
  '# \u0001 \u007f \u20ac',
  '# a\0b',
  '/* c */',
  '// c',
  ';',
  '}',
  '\u00a0',
  '\ufeff',
  '\u000b\u000c',
] as const

function ensemble(dims: string, type: string, line: string): string {
  return `platform: "ensemble"
input { name: "X" data_type: ${type} dims: ${dims} }
output { name: "Y" data_type: TYPE_FP32 dims: [ 2, 3 ] }
ensemble_scheduling { step { model_name: "matrix" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }
${line}
`
}

/** Ends of lines, blanks, comments of any bytes and the like, which change nothing or all. */
function written(text: string, { chance, oneOf }: Random): string {
  const changed = chance(0.2)
    ? oneOf([
        () => text.replaceAll('\n', '\r\n'),
        () => text.replaceAll(' ', '\t'),
        () => text.replaceAll('\n', '\u000b'),
        () => text.trimEnd(),
        () => `\ufeff${text}`,
        () => text.replaceAll(': ', ':'),
        () => text.replaceAll(' {', ' <').replaceAll('}', '>'),
      ])()
    : text
  const bytes = Buffer.from(changed)
  if (!chance(0.15)) return changed
  // A comment that is no UTF-8, as older editors wrote it.
  const comment = Buffer.from('# gr\xfc\xdfe \xff\n', 'latin1')
  const whole = chance(0.5) ? [comment, bytes] : [bytes, comment]
  return `base64:${Buffer.concat(whole).toString('base64')}`
}

/** A configuration in one of the ways that the text format has, right or wrong, which is loaded and shown. */
export function textCase(seed: number, random: Random): Omit<Case, 'id'> {
  const { chance, oneOf } = random
  const name = `txt_${seed}`
  const line = oneOf([
    () => `parameters { key: "k" value { string_value: ${oneOf(STRINGS)} } }`,
    () => `parameters { key: ${oneOf(STRINGS)} value { string_value: "v" } }`,
    () => `max_batch_size: ${oneOf(INTEGERS)}`,
    () => `model_transaction_policy { decoupled: ${oneOf(BOOLEANS)} }`,
    () => oneOf(LINES),
    () => '',
  ])()
  const dims = chance(0.15) ? oneOf(DIMS) : '[ 2, 3 ]'
  const type = chance(0.1) ? oneOf(TYPES) : 'TYPE_FP32'
  return {
    files: {
      [`${name}/config.pbtxt`]: written(ensemble(dims, type, line), random),
      [`${name}/1/note`]: '',
    },
    calls: [
      { method: 'POST', path: `/v2/repository/models/${name}/load` },
      { method: 'GET', path: `/v2/models/${name}/config` },
    ],
  }
}

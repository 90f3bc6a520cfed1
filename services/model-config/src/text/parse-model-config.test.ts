import * as fc from 'fast-check'
import t from 'tap'
import { FACE_ENSEMBLE, OCR_DETECTION, OCR_ENSEMBLE } from '../testing/published-configs.ts'
import { emptyModelConfig, locateModelConfig, parseModelConfig } from './parse-model-config.ts'

const parse = (text: string) => parseModelConfig(text, '/models/m/config.pbtxt')
const dims = (text: string) => parse(text).input.map((io) => io.dims)

await t.test('the ensemble of the face system parses', async (t) => {
  const config = parse(FACE_ENSEMBLE)
  t.equal(config.name, 'ens_face_restoration_v2.1')
  t.equal(config.platform, 'ensemble')
  t.same(config.input[0]?.dims, [-1, -1, 3])
  t.equal(config.input[0]?.data_type, 'TYPE_UINT8')
  const steps = config.ensemble_scheduling?.step ?? []
  t.same(
    steps.map((step) => [step.model_name, step.model_version]),
    [
      ['pre_gfpgan', -1],
      ['infer_face_restoration_v2.1', -1],
      ['post_gfpgan', -1],
    ],
  )
  t.same(steps[1]?.input_map, { input__0: 'preprocessed_image' })
  t.same(steps[2]?.output_map, { output__0: 'image_out' })
})

await t.test('tensor names of the OCR system keep colon, slash and dot', async (t) => {
  const detection = parse(OCR_DETECTION)
  t.equal(detection.max_batch_size, 256)
  t.equal(detection.input[0]?.name, 'input_images:0')
  t.same(
    detection.output.map((io) => io.name),
    ['feature_fusion/Conv_7/Sigmoid:0', 'feature_fusion/concat_3:0'],
  )
  const step = parse(OCR_ENSEMBLE).ensemble_scheduling?.step[2]
  t.same(step?.input_map, {
    detection_postprocessing_input_1: 'Sigmoid:0',
    detection_postprocessing_input_2: 'concat_3:0',
    detection_postprocessing_input_3: 'preprocessed_image',
  })
})

await t.test('a list may be repeated, bracketed or both', async (t) => {
  const written = [
    'input { dims: 1 dims: -2 dims: 3 }',
    'input { dims: [1, -2, 3] }',
    'input { dims: [1, -2] dims: 3 }',
    'input [ { dims: [ 1 ] dims: [], dims: [-2, 3]; } ]',
    'input: [ < dims: 1, dims: -2; dims: 3 > ]',
    'input: { dims:[1,-2,3] };',
  ]
  for (const text of written) t.same(dims(text), [[1, -2, 3]], text)
  const names = parse('input [{name:"a"},<name:"b">] input {name:"c"}').input.map((io) => io.name)
  t.same(names, ['a', 'b', 'c'])
})

await t.test('strings have every escape of the text format', async (t) => {
  const cases: [string, string][] = [
    [`"plain" 'single' "double"`, 'plainsingledouble'],
    [String.raw`"\a\b\f\n\r\t\v\\\?\'\""`, '\x07\b\f\n\r\t\v\\?\'"'],
    [String.raw`"\x41\x4a\101\7"`, 'AJA\x07'],
    [String.raw`"\u00e9\U0001F600"`, 'é😀'],
    [String.raw`"\xc3" '\xa9'`, 'é'],
    [`"it's" ' "quoted"'`, `it's "quoted"`],
    ['"# no comment" # a comment\n"."', '# no comment.'],
    ['"größe 日本 😀"', 'größe 日本 😀'],
  ]
  for (const [text, expected] of cases) t.equal(parse(`name: ${text}`).name, expected, text)
})

await t.test('integers are decimal, hexadecimal or octal', async (t) => {
  const cases: [string, number][] = [
    ['17', 17],
    ['0x1F', 31],
    ['010', 8],
    ['0', 0],
    ['-5', -5],
    ['- 5', -5],
    ['-0', 0],
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
  ]
  for (const [text, expected] of cases) {
    t.equal(parse(`max_batch_size: ${text}`).max_batch_size, expected, text)
  }
})

function utilization(text: string): number | undefined {
  return parse(`sequence_batching { direct { minimum_slot_utilization: ${text} } }`)
    .sequence_batching?.direct?.minimum_slot_utilization
}

await t.test('floats have every form', async (t) => {
  const cases: [string, number][] = [
    ['.5', 0.5],
    ['5.', 5],
    ['0.25f', 0.25],
    ['10F', 10],
    ['1e-1', 0.1],
    ['1E+2', 100],
    ['-1.5', -1.5],
    ['7', 7],
    ['inf', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
  ]
  for (const [text, expected] of cases) t.equal(utilization(text), expected, text)
  t.ok(Number.isNaN(utilization('NaN')))
})

await t.test('booleans and enums have every form', async (t) => {
  for (const text of ['true', 'True', 't', '1', '0x1', '01']) {
    t.equal(parse(`response_cache { enable: ${text} }`).response_cache?.enable, true, text)
  }
  for (const text of ['false', 'False', 'f', '0']) {
    t.equal(parse(`response_cache { enable: ${text} }`).response_cache?.enable, false, text)
  }
  for (const text of ['TYPE_STRING', '13', '0xD']) {
    t.equal(parse(`input { data_type: ${text} }`).input[0]?.data_type, 'TYPE_STRING', text)
  }
})

await t.test('a map is entries or lists of entries, the last of a key wins', async (t) => {
  t.same(
    parse(`metric_tags { key: "a" value: "1" }
      metric_tags [ { value: "2" key: "b" }, < key: "a", value: "3" > ]
      metric_tags: {}`).metric_tags,
    { a: '3', b: '2', '': '' },
  )
  const { parameters } = parse('parameters { key: "__proto__" value: { string_value: "x" } }')
  t.same(Object.keys(parameters), ['__proto__'])
  const batching = parse(
    'dynamic_batching { priority_queue_policy { key: 0x10 value {} } priority_queue_policy {} }',
  )
  t.same(Object.keys(batching.dynamic_batching?.priority_queue_policy ?? {}), ['0', '16'])
})

await t.test('given messages are present, also empty ones; others are absent', async (t) => {
  const config = parse('version_policy { all { } } optimization < > input { reshape: { } }')
  t.same(config.version_policy, { all: {} })
  t.equal(config.optimization?.priority, 'PRIORITY_DEFAULT')
  t.same(config.input[0]?.reshape, { shape: [] })
  t.notOk('dynamic_batching' in config)
  t.notOk('graph' in (config.optimization ?? {}))
})

await t.test('what protobuf in C++ takes is taken', async (t) => {
  t.equal(parse(String.raw`name: "\ud83d\ude00 \501"`).name, '😀 A', 'two halves, and low bits')
  const again = parse('model_transaction_policy { decoupled: false decoupled: true }')
  t.same(again.model_transaction_policy, { decoupled: true }, 'a default, and then a value')
  t.throws(() => parse('max_batch_size: 4 max_batch_size: 4'), /a second time/)
})

await t.test('members of a oneof keep their presence even with a default value', async (t) => {
  const config = parse('model_warmup { inputs { key: "i" value { zero_data: false } } }')
  t.same(config.model_warmup[0]?.inputs, {
    i: { data_type: 'TYPE_INVALID', dims: [], zero_data: false },
  })
})

await t.test('separators and comments are no content', async (t) => {
  const text = '# first \uDC80\r\nname:"m",platform:"p";\f\vbackend:"b"# last'
  t.same(parse(text), { ...emptyModelConfig('m'), platform: 'p', backend: 'b' })
  t.same(parse(''), emptyModelConfig())
  t.same(parse(' # only a comment'), emptyModelConfig())
})

const REFUSED: readonly [string, string, string][] = [
  [
    'an unknown field',
    'nam: "x"',
    '1, column 1: got unknown field "nam", want a field of ModelConfig',
  ],
  ['a field of no name', '\n  3: 4', '2, column 3: got "3", want a field name'],
  ['an extension', '[foo.bar]: 1', '1, column 1: got "[", want a field of ModelConfig; extensions'],
  [
    'Any',
    'input { [type.googleapis.com/x] {} }',
    '1, column 9: got "[", want a field of ModelConfig',
  ],
  ['no colon', 'name "x"', '1, column 6: got string "x", want ":" after field "name"'],
  ['a field again', 'name: "a" name: "b"', '1, column 11: got field "name" a second time'],
  ['a message again', 'optimization {} optimization {}', 'got field "optimization" a second time'],
  [
    'two of a oneof',
    'dynamic_batching {}\nsequence_batching {}',
    '2, column 1: got field "sequence_batching" after "dynamic_batching", want one member of oneof "scheduling_choice"',
  ],
  [
    'two policies',
    'version_policy { all {} latest {} }',
    'want one member of oneof "policy_choice"',
  ],
  ['a trailing comma in a list', 'input { dims: [1,] }', 'column 18: got "]", want int64 from'],
  ['a list without commas', 'input { dims: [1 2] }', 'got "2", want "]" or ","'],
  ['two separators', 'name: "a";;', 'column 11: got ";", want a field name'],
  ['mixed braces', 'input { name: "a" >', 'got ">", want a field name or "}"'],
  ['no end of a message', 'input {', 'column 8: got the end of the text, want a field name or "}"'],
  ['a scalar for a message', 'input: 3', 'got "3", want "<" or "{" for message field "input"'],
  ['an int32 that is too large', 'max_batch_size: 2147483648', 'got "2147483648", want int32 from'],
  ['an int32 that is too small', 'max_batch_size: -2147483649', 'got "-2147483649", want int32'],
  ['an int64 over 2^53', 'input { dims: 9007199254740992 }', 'want int64 from -9007199254740991'],
  [
    'a negative uint32',
    'ensemble_scheduling { max_inflight_requests: -1 }',
    'got "-1", want uint32',
  ],
  ['a float for an integer', 'max_batch_size: 1.0', 'got "1.0", want int32'],
  ['text for an integer', 'max_batch_size: "1"', 'got string "1", want int32'],
  ['bad octal', 'max_batch_size: 08', 'got "08", want octal digits after a leading 0'],
  ['bad hexadecimal', 'max_batch_size: 0xg', 'got "0x", want hexadecimal digits after 0x'],
  ['two points', 'max_batch_size: 1.2.3', 'got "1.2.", want a number with one decimal point'],
  [
    'hexadecimal for a float',
    'sequence_batching { direct { minimum_slot_utilization: 0x1 } }',
    'got "0x1", want a decimal float for field "minimum_slot_utilization"',
  ],
  ['a bool out of range', 'response_cache { enable: 2 }', 'got "2", want true or false'],
  ['a bool in capitals', 'response_cache { enable: TRUE }', 'got "TRUE", want true or false'],
  [
    'an unknown enum name',
    'input { data_type: TYPE_X }',
    'got "TYPE_X", want one of TYPE_INVALID,',
  ],
  ['an unknown enum number', 'input { data_type: 15 }', 'got "15", want one of TYPE_INVALID,'],
  ['a negative enum number', 'input { data_type: -1 }', 'got "-", want one of TYPE_INVALID,'],
  ['an enum as text', 'input { data_type: "TYPE_FP32" }', 'want one of TYPE_INVALID,'],
  ['a word for text', 'name: x', 'got "x", want a quoted string for field "name"'],
  ['text without end', 'name: "x', 'column 7: got a string without end, want a closing "'],
  ['an unknown escape', String.raw`name: "\q"`, String.raw`column 8: got escape "\q"`],
  ['half of a character', String.raw`name: "\ud83d\u0041"`, 'names a Unicode character'],
  ['an escape with a capital', String.raw`name: "\X41"`, String.raw`got escape "\X"`],
  ['text over two lines', 'name: "a\nb"', 'column 7: got a string that passes the end of its line'],
  ['a byte order mark', '\uFEFFname: "a"', 'got a byte order mark, which protobuf does not read'],
  ['stray bytes in a string', 'name: "a\uDC80"', 'got bytes that are no UTF-8, want a string'],
  ['stray bytes elsewhere', 'name\uDC80: "a"', 'got bytes that are no UTF-8, want a token'],
  ['a NUL in a comment', '# a\0b', 'got control character 0, want a token'],
  ['a character beyond Unicode', String.raw`name: "\U00110000"`, 'names a Unicode character'],
  ['bytes that are no UTF-8', String.raw`name: "\xff"`, 'want a string of valid UTF-8'],
  ['a NUL character', 'name: "\0"', 'got a NUL character'],
  ['a control character', 'name: "x" \u0001', 'got control character 1, want a token'],
  ['a character of no token', 'name: "x" @', 'got "@", want a token of the text format'],
  ['a key twice', 'metric_tags { key: "a" key: "b" }', 'got "key" a second time, want it once'],
  ['a value twice', 'metric_tags { value: "a" value: "b" }', 'got "value" a second time'],
  ['a strange map field', 'metric_tags { kay: "a" }', 'want "key" or "value" in an entry of map'],
]

await t.test('what is wrong is CONFIG_SYNTAX with file, line and column', async (t) => {
  for (const [what, text, message] of REFUSED) {
    try {
      parse(text)
      t.fail(what)
    } catch (error) {
      const { reason, code, message: got } = Object(error)
      t.equal(reason, 'CONFIG_SYNTAX', what)
      t.equal(code, 'INVALID_ARGUMENT', what)
      t.ok(String(got).includes(message), `${what}: ${got}`)
      t.match(
        got,
        /^failed to read text proto from \/models\/m\/config\.pbtxt: line \d+, column \d+: got [^]+, want /,
      )
    }
  }
})

function isParsedOrRefused(text: string): boolean {
  try {
    parse(text)
    return true
  } catch (error) {
    return Object(error).reason === 'CONFIG_SYNTAX'
  }
}

const TOKENS =
  `name input dims parameters key value : { } [ ] < > , ; "a" 'b' - 1 0x 1.5f true # \n \\ " inf [a.b]`.split(
    ' ',
  )

await t.test('arbitrary text is parsed or refused with CONFIG_SYNTAX', async (t) => {
  const token = fc.constantFrom(...TOKENS)
  fc.assert(fc.property(fc.string({ unit: 'binary' }), isParsedOrRefused), { numRuns: 500 })
  fc.assert(
    fc.property(fc.array(token, { maxLength: 40 }), (tokens) =>
      isParsedOrRefused(tokens.join(' ')),
    ),
    { numRuns: 500 },
  )
  t.pass('held for every text tried')
})

await t.test('published configs with any edit are parsed or refused', async (t) => {
  const source = fc.constantFrom(FACE_ENSEMBLE, OCR_ENSEMBLE, OCR_DETECTION)
  const edit = fc.record({
    at: fc.nat(4000),
    remove: fc.nat(6),
    insert: fc.string({ maxLength: 4 }),
  })
  fc.assert(
    fc.property(source, fc.array(edit, { minLength: 1, maxLength: 4 }), (text, edits) => {
      let edited: string = text
      for (const { at, remove, insert } of edits) {
        const start = at % edited.length
        edited = edited.slice(0, start) + insert + edited.slice(start + remove)
        if (edited === '') edited = ' '
      }
      return isParsedOrRefused(edited)
    }),
    { numRuns: 500 },
  )
  t.pass('held for every edit tried')
})

await t.test('a large text is read in one pass', async (t) => {
  const inputs = Array.from({ length: 20_000 }, (_, i) => `input { name: "i${i}" } # ${i}`)
  t.equal(parse(inputs.join('\n')).input.length, 20_000)
  t.equal(parse('#\n'.repeat(200_000)).input.length, 0)
})

await t.test(
  'fields are found by their path, or by the nearest parent that is written',
  async (t) => {
    const text = `platform: "ensemble"
input [ { name: "a" dims: [ 1, 2 ] },
  { name: "b" } ]
input { name: "c" }
ensemble_scheduling {
  step [
    { model_name: "m"
      input_map { key: "x.y" value: "a" }
      input_map { key: "x" value: "b" } }
  ]
  step { model_name: "n" }
}`
    const { positionOf, config } = locateModelConfig(text, 'config.pbtxt')
    t.same(config, parseModelConfig(text, 'config.pbtxt'))
    const step = 'ensemble_scheduling.step'
    for (const [path, line, column] of [
      ['input', 2, 1],
      ['input[1].name', 3, 5],
      ['input[2]', 4, 7],
      ['input[0].dims[1]', 2, 32],
      [`${step}[0].model_name`, 7, 7],
      [`${step}[0].input_map[x.y]`, 8, 17],
      [`${step}[0].input_map[x]`, 9, 17],
      [`${step}[0].input_map[absent]`, 8, 7],
      [`${step}[1].output_map[x]`, 11, 8],
      ['max_batch_size', 1, 1],
      ['', 1, 1],
    ] as const) {
      t.same(positionOf(path), { line, column }, path)
    }
    t.throws(() => parseModelConfig('nmae: "x"', 'p'), {
      message:
        /line 1, column 1: got unknown field "nmae", want a field of ModelConfig; did you mean "name"\?/,
    })
  },
)

import * as fc from 'fast-check'
import t from 'tap'
import { locateFault } from './locate-fault.ts'
import { readYaml } from './yaml-documents.ts'

const valuesOf = (text: string) => readYaml(text).documents.map(({ value }) => value)

await t.test('documents are read as kubectl reads them', async (t) => {
  const cases: [string, unknown[]][] = [
    ['a: 1\n---\n---\n# nothing\n---\nb: [2]\n', [{ a: 1 }, { b: [2] }]],
    ['a: y\nb: "y"\nc: on\nd: No', [{ a: true, b: 'y', c: true, d: false }]],
    ['a: 1:30\nb: 2026-11-22\nc: 010\nd: 0x10', [{ a: '1:30', b: '2026-11-22', c: 8, d: 16 }]],
    [
      'input_images:0: "x"\nfeature_fusion/Conv_7/Sigmoid:0: Sigmoid:0',
      [{ 'input_images:0': 'x', 'feature_fusion/Conv_7/Sigmoid:0': 'Sigmoid:0' }],
    ],
    ['a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}', [{ a: { b: 1 }, c: { b: 1 }, d: { b: 1, e: 2 } }]],
    ['{"a": [1, null]}', [{ a: [1, null] }]],
    ['', []],
  ]
  for (const [text, values] of cases) t.same(valuesOf(text), values, text)
})

await t.test('what cannot be read is told with its place; other documents are read', async (t) => {
  const { documents, problems } = readYaml('a: 1\n---\nb: [1\n---\nc: 3\n')
  t.match(documents, [{ value: { a: 1 } }, { value: { c: 3 } }])
  t.equal(problems.length, 1)
  const refused: [string, RegExp, number][] = [
    ['a: 1\na: 2', /unique/i, 2],
    [
      `a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [${'*a,'.repeat(9)}]\nc: [${'*b,'.repeat(20)}]`,
      /alias/i,
      1,
    ],
    ['a: "b', /quote/, 1],
    ['a: \t- b: !!foo {', /./, 1],
  ]
  for (const [text, message, line] of refused)
    t.match(readYaml(text).problems, [{ message, line }], text)
})

await t.test(
  'positions are those of keys and items, of an absent value that of its parent',
  async (t) => {
    const [document] = readYaml(
      '# first\nspec:\n  steps:\n    - name: a\n      inputMap: {x: y}\n',
    ).documents
    const at = (...path: (string | number)[]) => document?.positionOf(path)
    t.same(at(), { line: 2, column: 1 })
    t.same(at('spec', 'steps'), { line: 3, column: 3 })
    t.same(at('spec', 'steps', 0), { line: 4, column: 7 })
    t.same(at('spec', 'steps', 0, 'inputMap', 'x'), { line: 5, column: 18 })
    t.same(at('spec', 'steps', 0, 'modelRef', 'name'), { line: 4, column: 7 })
    t.same(at('spec', 'steps', 7), { line: 3, column: 3 })
  },
)

await t.test('any text at all is read or refused, with places within it', async (t) => {
  const word = fc.constantFrom(
    'a',
    ': ',
    '- ',
    '\n',
    '  ',
    '[',
    ']',
    '{',
    '}',
    '"',
    "'",
    '&a ',
    '*a',
    '!!set ',
    '---\n',
    '|\n',
    '? ',
    '#',
    '%YAML 1.2\n',
    '<<: ',
    '\t',
    '\u0000',
    '\u{1F600}',
    ',',
  )
  const text = fc.oneof(
    fc.array(word, { maxLength: 60 }).map((words) => words.join('')),
    fc.string({ unit: 'binary' }),
  )
  fc.assert(
    fc.property(text, (yaml) => {
      const lines = yaml.split('\n').length
      const { documents, problems } = readYaml(yaml)
      for (const { line } of [
        ...problems,
        ...documents.map(({ positionOf }) => positionOf(['a', 0])),
      ]) {
        if (line < 1 || line > lines + 1) throw new Error(`line ${line} of ${lines}`)
      }
    }),
    { numRuns: 500 },
  )
  for (const deep of ['['.repeat(1e5), '{a: '.repeat(1e4), '- '.repeat(1e4)]) {
    t.ok(readYaml(deep).problems.length > 0)
  }
})

await t.test(
  'the path that a check reports leads into the manifest, whatever tensors are called',
  async (t) => {
    const inputMap = { 'input_images:0': 'x', 'a].b': 'y' }
    const spec = {
      maxBatchSize: 1,
      steps: [
        { name: 'a', inputMap },
        { name: 'b', inputMap },
      ],
    }
    const cases: [string, (string | number)[]][] = [
      [
        'steps[1](b).inputMap[input_images:0]: FP32 expected',
        ['steps', 1, 'inputMap', 'input_images:0'],
      ],
      ['steps[0](a).inputMap[a].b]: no', ['steps', 0, 'inputMap', 'a].b']],
      ['steps[0](a).modelRef.name: none', ['steps', 0]],
      ['maxBatchSize: got 9', ['maxBatchSize']],
      ['modelName: taken', []],
    ]
    for (const [path, wanted] of cases) t.same(locateFault(spec, path), ['spec', ...wanted], path)
  },
)

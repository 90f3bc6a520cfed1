import { join } from 'node:path'
import { ensembleManifest, modelManifest } from '@tutti/api/testing'
import t from 'tap'
import { stringify } from 'yaml'
import { runCommand } from '../testing/run-command.ts'

const REPOSITORIES = join(import.meta.dirname, '../../../../model_repository')

function validate(argv: readonly string[], input?: string) {
  return runCommand(['validate', ...argv], input === undefined ? {} : { input })
}

const typed = (name: string) => ({ name, datatype: 'FP32', shape: [4] })
const M = modelManifest('m', { inputs: [typed('x')], outputs: [typed('y')] })
const yaml = (...manifests: readonly unknown[]) =>
  manifests.map((one) => stringify(one, { version: '1.1' })).join('---\n')

await t.test('what is fine ends with 0', async (t) => {
  t.match(await validate(['-f', '-'], yaml(M, ensembleManifest('e'))), {
    code: 0,
    out: '2 Models and Ensembles, no errors\n',
  })
  const list = { apiVersion: 'v1', kind: 'List', items: [M, ensembleManifest('e')] }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }
  t.match(await validate(['-f', '-'], yaml(list, secret)), {
    code: 0,
    out: '2 Models and Ensembles, no errors, 1 other resource not looked at\n',
  })
})

await t.test('a model that is not known is a note, and the command ends with 0', async (t) => {
  t.match(await validate(['-f', '-'], yaml(ensembleManifest('e'))), {
    code: 0,
    out: /^-:16:7: Ensemble\/e: steps\[0\]\(a\)\.modelRef: no Model or Ensemble serves 'm' yet; want one of that served name \(SchemaPending\)\n1 Model or Ensemble, no errors, 1 note\n$/,
  })
})

await t.test('a budget that blocks every drain is a note', async (t) => {
  const blocking = modelManifest('m', { disruptionBudget: { minAvailable: 1 } })
  t.match(await validate(['-f', '-'], yaml(blocking)), {
    code: 0,
    out: /^-:\d+:5: Model\/m: disruptionBudget\.minAvailable: got 1, which blocks every drain .* \(Warning\)\n1 Model or Ensemble, no errors, 1 note\n$/,
  })
})

await t.test('the name of a resource is no served name, and the report has it', async (t) => {
  const { code, out } = await validate(
    ['-f', '-'],
    yaml(
      modelManifest('m', { modelName: 'M.1', inputs: [typed('x')], outputs: [typed('y')] }),
      ensembleManifest('e'),
    ),
  )
  t.equal(code, 0)
  t.match(out, "no Model or Ensemble serves 'm' yet; Model 'm' is served as 'M.1' (SchemaPending)")
})

await t.test(
  'each error has its file, line, column, path and reason, and ends with 1',
  async (t) => {
    const wrong = ensembleManifest('e', {
      steps: [{ name: 'a', modelRef: { name: 'm' }, inputMap: { z: 'x' } }],
    })
    const cases: [string, RegExp][] = [
      [
        yaml(M, wrong),
        /^-:[0-9]+:9: Ensemble\/e: steps\[0\]\(a\)\.inputMap\[z\]: 'm' has no input 'z'; there is 'x' \(UnknownTensor\)$/m,
      ],
      [
        yaml(M, M),
        /^-:23:3: Model\/m: modelName: 'm' is the served name of Model 'm'; want another \(NameConflict\)$/m,
      ],
      [
        yaml(M, ensembleManifest('m')),
        /Model\/m: modelName: 'm' is the served name of Ensemble 'm'.*\(NameConflict\)$/m,
      ],
      [
        yaml(modelManifest('m', { replicas: 1 })),
        /^-:9:3: Model\/m: spec\.replicas: there is no such field \(InvalidSpec\)$/m,
      ],
      [
        yaml(modelManifest('m', { scalling: {} })),
        /^-:9:3: Model\/m: spec\.scalling: there is no such field; did you mean scaling\? \(InvalidSpec\)$/m,
      ],
      [
        yaml(M).replace('"y"', 'y'),
        /outputs\[0\]\.name: got true, want text; YAML reads an unquoted y, n, on, off, yes and no so \(InvalidSpec\)$/m,
      ],
      ['a: [', /^-:1:5: .*\(SyntaxError\)$/m],
      ['a: 1', /^-:1:1: got no apiVersion and kind, want a Kubernetes resource \(InvalidSpec\)$/m],
      [
        'apiVersion: tutti.dev/v1\nkind: Model',
        /^-:1:1: Model\/\?: apiVersion: got 'tutti\.dev\/v1', want/m,
      ],
      [
        'apiVersion: tutti.dev/v1alpha1\nkind: Modell',
        /^-:2:1: .*got 'Modell', want Model, Ensemble or Router/m,
      ],
    ]
    for (const [input, out] of cases)
      t.match(await validate(['-f', '-'], input), { code: 1, out }, input)
  },
)

const typedAs = (datatype: string, name: string) => ({ ...typed(name), datatype })

await t.test('all problems of a graph are told, each at its line', async (t) => {
  const wrong = ensembleManifest('e', {
    outputs: [
      { name: 'y', from: 'a.y' },
      { name: 'z', from: 'b.z', datatype: 'INT8', shape: [4] },
    ],
    steps: [
      { name: 'a', modelRef: { name: 'm' }, inputMap: { x: 'x', u: 'x' } },
      { name: 'b', modelRef: { name: 'k' }, inputMap: { i: 'a.y' } },
      { name: 'c', modelRef: { name: 'm' }, inputMap: { x: 'x' } },
    ],
  })
  const K = modelManifest('k', { inputs: [typedAs('INT8', 'i')], outputs: [typedAs('INT8', 'z')] })
  const text = yaml(wrong, M, K)
  const { code, out } = await validate(['-f', '-'], text)
  const lineOf = (part: string) => text.slice(0, text.indexOf(part)).split('\n').length
  t.equal(code, 1)
  t.same(
    out
      .split('\n')
      .slice(0, 3)
      .map((line) => line.replace(/:[0-9]+: Ensemble.e/, '')),
    [
      `-:${lineOf('- name: c')}: steps[2](c): nothing reads what it makes; want one of its outputs in \`outputs\` or read by a step, or no such step (UnreachableStep)`,
      `-:${lineOf('u: x')}: steps[0](a).inputMap[u]: 'm' has no input 'u'; there is 'x' (UnknownTensor)`,
      `-:${lineOf('i: a.y')}: steps[1](b).inputMap[i]: 'k' takes INT8[4], outputs[0](y) is FP32[4] (DatatypeMismatch)`,
    ],
  )
  t.match(out, /^3 Models and Ensembles, 3 errors$/m)
})

await t.test('namespaces do not see each other', async (t) => {
  const elsewhere = { ...M, metadata: { name: 'm', namespace: 'other' } }
  t.match(await validate(['-f', '-'], yaml(M, elsewhere)), { code: 0 })
  t.match(await validate(['-f', '-'], yaml(elsewhere, ensembleManifest('e'))), {
    out: /SchemaPending/,
  })
})

const over = (name: string, of: string) =>
  ensembleManifest(name, {
    steps: [{ name: 'a', ensembleRef: { name: of }, inputMap: { x: 'x' } }],
  })

await t.test('Ensembles are checked with those that they contain', async (t) => {
  const inner = ensembleManifest('inner')
  t.match(await validate(['-f', '-'], yaml(over('outer', 'inner'), inner, M)), {
    code: 0,
    out: /^3.*no errors$/m,
  })
  const cycle = await validate(['-f', '-'], yaml(over('a', 'b'), over('b', 'a'), over('c', 'a')))
  t.match(cycle, { code: 1, out: /Ensemble\/a: .*a -> b -> a \(CycleDetected\)/ })
  t.match(cycle, { out: /2 errors, 1 note/ }, 'what contains one of them waits')
})

const chain = (model: string) =>
  ensembleManifest('e', {
    inputs: [{ ...typed('X'), shape: [16] }],
    maxBatchSize: 8,
    outputs: [{ name: 'Y', from: 'a.Y' }],
    steps: [{ name: 'a', modelRef: { name: model }, inputMap: { X: 'X' } }],
  })

await t.test(
  'a model repository says what the manifests do not, and what is not in it will not come',
  async (t) => {
    const repository = `--model-repository=${join(REPOSITORIES, '.variants/fixtures/basic')}`
    t.match(await validate(['-f', '-', repository], yaml(chain('add_one_batch'))), {
      code: 0,
      out: /^1.*no errors$/m,
    })
    t.match(await validate(['-f', '-', repository], yaml(chain('add_one_bath'))), {
      code: 1,
      out: /no Model or Ensemble serves 'add_one_bath'; did you mean 'add_one_batch'\? \(UnknownModel\)/,
    })
  },
)

await t.test('a model of the repository that cannot be read is not called absent', async (t) => {
  const folder = t.testdir({ add_one_batch: { 'config.pbtxt': 'name: ', 1: {} } })
  t.match(
    await validate(['-f', '-', `--model-repository=${folder}`], yaml(chain('add_one_batch'))),
    {
      code: 1,
      out: /modelRef\.name: 'add_one_batch' is there, but cannot be read: .+ \(UnknownModel\)/,
    },
  )
})

await t.test('JSON has the same', async (t) => {
  const { code, out } = await validate(['-f', '-', '--output=json'], yaml(modelManifest('M')))
  t.equal(code, 1)
  t.match(JSON.parse(out), {
    valid: false,
    checked: 0,
    problems: [
      {
        file: '-',
        line: 4,
        column: 3,
        resource: 'Model/M',
        path: 'metadata.name',
        reason: 'InvalidSpec',
      },
    ],
  })
})

await t.test('files and folders are read; what cannot be ends with 2', async (t) => {
  const folder = t.testdir({
    'm.yaml': yaml(M),
    'e.json': JSON.stringify(ensembleManifest('e')),
    'x.txt': '{',
    empty: {},
  })
  t.match(await validate(['-f', folder]), { code: 0, out: /^2 Models/ })
  t.match(await validate(['-f', join(folder, 'm.yaml'), '-f', join(folder, 'e.json')]), { code: 0 })
  t.match(await validate(['-f', join(folder, 'none')]), {
    code: 2,
    err: /--filename .*none: it cannot be read/,
  })
  t.match(await validate(['-f', join(folder, 'empty')]), { code: 2, err: /has no \.yaml/ })
  t.match(await validate([]), { code: 2, err: /--filename: got none, want -f FILE/ })
  t.match(await validate([folder]), { code: 2, err: /without it/ })
  const nowhere = `--model-repository=${join(folder, 'none')}`
  t.match(await validate(['-f', folder, nowhere]), {
    code: 2,
    err: /--model-repository: .*none' cannot be read: it does not exist/,
  })
  t.match(await validate(['--help']), { code: 0, out: /--model-repository/ })
})

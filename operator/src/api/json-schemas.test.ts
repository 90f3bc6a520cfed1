import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { KINDS } from './crds.ts'
import { buildJsonSchemas } from './json-schemas.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')

/** The line by which editors find the schema. */
const COMMENT = '# yaml-language-server: $schema=https://tutti.dev/schemas/v1alpha1/manifest.json\n'

/** Manifests of ours in the YAML of pages, each with the page. */
function manifestsOf(path: string): readonly (readonly [path: string, manifest: unknown])[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  return [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)]
    .flatMap(([, yaml = '']) => [...parseAllDocuments(yaml)])
    .map((document): unknown => document.toJS())
    .filter((one) => isObject(one) && one['apiVersion'] === 'tutti.dev/v1alpha1')
    .map((manifest) => [path, manifest] as const)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

const schemas = [...buildJsonSchemas()].map(([path, text]) => [path, JSON.parse(text)] as const)

function compile() {
  const ajv = new Ajv({ strict: false, allErrors: true })
  for (const [, schema] of schemas) ajv.addSchema(schema)
  const validate = ajv.getSchema('https://tutti.dev/schemas/v1alpha1/manifest.json')
  if (validate === undefined) throw new Error('there is no schema for manifests')
  return (manifest: unknown): readonly string[] => {
    if (validate(manifest) === true) return []
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}

await t.test('the files are those that are generated', async (t) => {
  const names = readdirSync(join(ROOT, 'schemas', 'v1alpha1')).toSorted()
  t.same(
    schemas.map(([path]) => path).toSorted(),
    names.map((name) => `schemas/v1alpha1/${name}`),
  )
  t.same(names, ['ensemble.json', 'manifest.json', 'model.json', 'router.json'])
})

await t.test('they take every manifest of the documentation, as zod does', async (t) => {
  const problemsOf = compile()
  const manifests = PAGES.flatMap(manifestsOf)
  const kinds = manifests.map(([, manifest]) => (isObject(manifest) ? manifest['kind'] : undefined))
  for (const { kind } of KINDS) t.ok(kinds.includes(kind), kind)
  for (const [path, manifest] of manifests) {
    t.same(problemsOf(manifest), [], `${path}: ${JSON.stringify(manifest)}`)
    const definition = KINDS.find(({ kind }) => isObject(manifest) && manifest['kind'] === kind)
    t.ok(definition?.manifest.safeParse(manifest).success, path)
  }
})

await t.test('each whole manifest of the documentation names its schema', async (t) => {
  for (const path of PAGES) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const [, yaml = ''] of text.matchAll(/^```yaml\n((?:#.*\n)*apiVersion: tutti\.dev)/gm)) {
      t.ok(yaml.startsWith(COMMENT), `${path}: ${yaml}`)
    }
  }
})

await t.test('they refuse what zod refuses', async (t) => {
  const problemsOf = compile()
  const model = {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { name: 'a' },
    spec: { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/a' },
  }
  t.same(problemsOf(model), [])
  const cases: readonly (readonly [manifest: object, problem: RegExp])[] = [
    [{ ...model, kind: 'Modell' }, /^\/kind must be equal to one of/],
    [{ ...model, spec: undefined }, /must have required property 'spec'/],
    [{ ...model, spec: { ...model.spec, storageUrl: 'x' } }, /\/spec must NOT have additional/],
    [{ ...model, spec: { ...model.spec, storageUri: 5 } }, /\/spec\/storageUri must be string/],
    [{ ...model, metadata: { name: 'A_b' } }, /\/metadata\/name must match pattern/],
  ]
  for (const [manifest, problem] of cases) {
    const plain: unknown = JSON.parse(JSON.stringify(manifest))
    t.match(problemsOf(plain).join('\n'), problem)
    t.notOk(KINDS[0]?.manifest.safeParse(plain).success, JSON.stringify(plain))
  }
})

await t.test('the values of the overlays name the schema of the values, and fit it', async (t) => {
  const chart = join(ROOT, 'charts', 'tutti')
  const schema: unknown = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
  const ajv = new Ajv({ strict: false })
  const validate = ajv.compile(isObject(schema) ? schema : {})
  for (const name of readdirSync(join(chart, 'ci'))) {
    const text = readFileSync(join(chart, 'ci', name), 'utf8')
    t.match(text, /^# yaml-language-server: \$schema=\.\.\/values\.schema\.json\n/, name)
    const [document] = [...parseAllDocuments(text)]
    t.ok(validate(document?.toJS() ?? {}), `${name}: ${JSON.stringify(validate.errors)}`)
  }
})

// needs: apiserver
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { parse } from 'yaml'
import { CHART, forEach, type Rendered, template } from './helm.ts'

t.setTimeout(120_000)

const WITH_HELM = { skip: withoutKube('helm') }

interface Value {
  readonly path: string
  readonly depth: number
  readonly isEmpty: boolean
}

/** The chart's own values; those of Kubernetes, such as `resources`, are none. */
function listValues(): readonly Value[] {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
  const found: Value[] = []
  const visit = (written: Rendered, properties: Rendered, parents: readonly string[]): void => {
    for (const [name, value] of Object.entries(written)) {
      const path = [...parents, name].join('.')
      const isGroup = typeof value === 'object' && !Array.isArray(value)
      if (isGroup) {
        const inside = propertiesOf(properties[name], schema.definitions)
        if (inside === undefined) continue
        visit(value, inside, [...parents, name])
      }
      const isEmpty = !isGroup && (value === '' || value.length === 0)
      found.push({ path, depth: parents.length, isEmpty })
    }
  }
  visit(parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')), schema.properties, [])
  return found
}

/** Finds what a group of the chart's own may hold; undefined for others. */
function propertiesOf({ $ref = '', properties }: Rendered, definitions: Rendered) {
  if (/\/(resources|resourcesOfPods|podTemplate)$/.test($ref)) return undefined
  return properties ?? definitions[$ref.split('/').at(-1)]?.properties
}

const nulls = (values: readonly Value[]) =>
  Object.fromEntries(values.map(({ path }) => [path, null]))

await t.test('values that cannot be are refused', WITH_HELM, async (t) => {
  const cases: readonly Readonly<Record<string, unknown>>[] = [
    { 'nats.image.tag': '' },
    { 'step.image.digest': 'sha256:abc' },
    { 'operator.replicas': 0 },
    { 'nats.replicas': 2 },
    { 'nats.subjectPrefix': 'a.b' },
    { 'nats.credentialLifetimeSeconds': 1 },
    { 'nats.enabled': false, 'nats.external': { urls: ['http://n:1'], issuerSecret: 's' } },
    { 'scope.mode': 'Some' },
    { 'global.imageRegistry': 'https://registry.example' },
    { 'networkPolicy.apiServerCIDR': 'here' },
    { 'operator.logLevel': 'loud' },
    { 'operator.resources.limits.memory': '12Quux' },
    { 'nats.resources.requests.cpu': '-1' },
    { 'metrics.prometheusRule.stepSeconds': 30 },
    { 'metrics.prometheusRule.runbookUrl': 'wiki.example' },
    { 'metrics.prometheusRule.stepSeconds': '0.0' },
    { 'router.image.repository': 'a/../b' },
    { 'step.cudaImage.repository': 'a//b' },
    { 'global.imageRegistry': 'a/../b' },
    { 'telemetry.sampleRatio': 2 },
    { 'router.console': 'On' },
    { 'step.defaults.resources.limits.memory': '12Quux' },
    { 'step.defaults.podTemplate.metadata.labels': { 'a b': 'c' } },
    { 'router.defaults.priorityClassName': 'high' },
  ]
  await forEach(cases, async (values) => {
    const { code, err } = await template(values)
    t.not(code, 0, JSON.stringify(values))
    t.match(err, /values don't meet the specifications of the schema/, JSON.stringify(values))
  })
})

await t.test('values that do not fit together say what is wanted', WITH_HELM, async (t) => {
  const urls = ['nats://n:4222']
  const cases: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
    [{ 'operator.image.tag': 'latest' }, '- operator.image.tag: got latest, want a version'],
    [
      { 'nats.image.tag': 'latest', 'step.image.tag': 'latest' },
      '- nats.image.tag: got latest, want a version, or a digest\n- step.image.tag: got latest',
    ],
    [{ 'step.cudaImage.tag': 'latest' }, '- step.cudaImage.tag: got latest, want a version'],
    [
      { 'step.pythonImage.tag': '1' },
      '- step.pythonImage: got a tag or a digest alone, want step.pythonImage.repository too',
    ],
    [
      { 'step.image.digest': `sha256:${'0'.repeat(64)}` },
      '- step.image.digest: got a digest without step.pythonImage, want its repository and digest too',
    ],
    [
      {
        'step.image.digest': `sha256:${'0'.repeat(64)}`,
        'step.pythonImage.repository': 'tutti/step-python',
      },
      '- step.image.digest: got a digest without step.cudaImage, want its repository and digest too; without GPUs, those of step.image\n- step.image.digest: got a digest without step.pythonCudaImage',
    ],
    [
      {
        'step.image.digest': `sha256:${'0'.repeat(64)}`,
        'step.pythonImage.repository': 'own/python',
        'step.cache.maxGiB': 5,
      },
      '- step.image.digest: got a digest without step.cudaImage, want its repository and digest too; without GPUs, those of step.image\n- step.cache: got namespaces or maxGiB without a place, want hostPath or claim',
    ],
    [
      { 'step.cache.namespaces': ['vision'] },
      '- step.cache: got namespaces or maxGiB without a place, want hostPath or claim',
    ],
    [{ 'nats.enabled': false }, '- nats.external.urls: got none, want the URLs of your servers'],
    [
      { 'nats.enabled': false, 'nats.external.urls': urls },
      '- nats.external.issuerSecret: got none, want the Secret with your signing key',
    ],
    [{ 'nats.external.urls': urls }, '- nats.external.urls: is for servers of your own'],
    [
      { 'nats.external.privateAuthority': true },
      '- nats.external.privateAuthority: is for servers',
    ],
    [
      { 'nats.config.maxPending': '15MB' },
      '- nats.config.maxPending: got 15MB, want 16MB at least',
    ],
    [{ 'scope.mode': 'Namespaces' }, '- scope.namespaces: got none, want the namespaces to serve'],
    [{ 'scope.namespaces': ['a', 'b'] }, '- scope.namespaces: got a, b, but scope.mode is Cluster'],
    [
      { 'telemetry.otlpEndpoint': 'http://c:4318/v1/traces' },
      '- telemetry.otlpEndpoint: got http://c:4318/v1/traces, want the base of OTLP over HTTP, http://HOST:4318, without /v1/traces',
    ],
    [
      { 'telemetry.otlpEndpoint': 'collector:4318' },
      '- telemetry.otlpEndpoint: got collector:4318, want the base',
    ],
    [
      { 'telemetry.otlpEndpoint': 'http://c:70000' },
      '- telemetry.otlpEndpoint: got http://c:70000, want the base',
    ],
    [{ 'telemetry.sampleRatio': 0.5 }, '- telemetry.otlpEndpoint: got none, want the collector'],
    [
      { 'step.defaults.podTemplate': { spec: { volumes: [{ name: 'a', emptyDir: null }] } } },
      '- step.defaults.podTemplate: got null, want $patch: delete',
    ],
    [
      { 'router.defaults.podTemplate': { metadata: { labels: { 'tutti.dev/model': 'a' } } } },
      '- router.defaults.podTemplate.metadata.labels: got tutti.dev/model, which belongs to the operator',
    ],
    [{ 'global.imageregistry': 'r.example' }, '- global.imageregistry: want global.imageRegistry'],
    [
      { 'metrics.enabled': false, 'metrics.serviceMonitor.enabled': true },
      '- metrics.serviceMonitor.enabled: got true, want metrics.enabled: true too',
    ],
  ]
  await forEach(cases, async ([values, problem]) => {
    const { code, err } = await template(values)
    t.not(code, 0, problem)
    t.match(err, problem)
  })
  const least = { 'nats.config.maxPending': '16384KB' }
  const registry = { 'global.imageRegistry': 'registry.example:5000/mirror/' }
  const images = { 'router.image.repository': 'localhost:5000/a-b.c__d/router' }
  // As --set gives it.
  const slow = { 'metrics.prometheusRule': { enabled: true, stepSeconds: '0.5' } }
  await forEach([least, registry, images, slow], async (values) => {
    t.match(await template(values), { code: 0 }, JSON.stringify(values))
  })
})

await t.test('what templates need is refused by its name if it is null', WITH_HELM, async (t) => {
  const needed = listValues().filter(({ isEmpty }) => !isEmpty)
  const depths = new Set(needed.map(({ depth }) => depth))
  t.equal(depths.size, 4)
  for (const depth of depths) {
    const some = needed.filter((value) => value.depth === depth)
    const { code, err } = await template(nulls(some))
    t.equal(code, 1)
    const [, told = ''] = /values that are null.*?:\n((?:- .*\n?)+)/.exec(err) ?? []
    const paths = told.trim().split('\n')
    t.same(paths.toSorted(), some.map(({ path }) => `- ${path}`).toSorted(), err)
  }
})

await t.test('null for a value that is empty by default changes nothing', WITH_HELM, async (t) => {
  const empty = listValues().filter(({ isEmpty }) => isEmpty)
  t.ok(empty.length > 20)
  const [plain, other] = [await template({}), await template(nulls(empty))]
  t.equal(other.code, 0, other.err)
  t.same(other.out.split('\n'), plain.out.split('\n'))
})

// needs: apiserver
import { readFileSync } from 'node:fs'
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { parse, parseAllDocuments, visit } from 'yaml'
import {
  CHART,
  find,
  forEach,
  helm,
  namesOf,
  OVERLAYS,
  operatorArgsOf,
  parseAll,
  type Rendered,
  render,
  template,
  type Values,
} from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

await t.test('helm has nothing to say against it, with any overlay', WITH_HELM, async (t) => {
  await forEach(OVERLAYS, async (overlay) => {
    const args = ['--strict', '--kube-version=1.34.4', `--values=${overlay}`]
    const run = await helm('lint', ...args, CHART)
    t.equal(run.code, 0, `${overlay}\n${run.out}${run.err}`)
  })
})

await t.test('what helm would read as a boolean is quoted', WITH_HELM, async (t) => {
  // Helm keeps to YAML 1.1, where these are booleans too.
  const { out } = await template({})
  const found: string[] = []
  for (const document of parseAllDocuments(out)) {
    visit(document, {
      Scalar: (_, { type, source = '' }) => {
        if (type === 'PLAIN' && /^(?:y|n|yes|no|on|off)$/i.test(source)) found.push(source)
      },
    })
  }
  t.same(found, [])
})

await t.test('Argo CD renders the same before and after its first sync', WITH_HELM, async (t) => {
  const { code, out, err } = await template({})
  t.equal(code, 0, err)
  // As it says what the cluster has; it runs `helm template`, so nothing can be looked up.
  const synced = ['--api-versions=tutti.dev/v1alpha1', '--api-versions=tutti.dev/v1alpha1/Model']
  for (const args of [[], synced, synced]) {
    const again = await template({}, ...args)
    t.equal(again.code, 0, again.err)
    t.ok(again.out === out, args.join(' '))
  }
  const upgraded = await template({}, '--is-upgrade', ...synced)
  t.ok(upgraded.out === out, 'what sees an upgrade gets the same')
})

await t.test(
  'every overlay renders, each time the same, all images with a version',
  WITH_HELM,
  async (t) => {
    t.ok(OVERLAYS.length > 5)
    await forEach(OVERLAYS, async (overlay) => {
      const first = await template({}, `--values=${overlay}`)
      t.equal(first.code, 0, first.err)
      const again = await template({}, `--values=${overlay}`)
      t.ok(first.out === again.out, overlay)
      const objects = parseAll(first.out)
      const names = objects
        .map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`)
        .toSorted()
      t.same(names, [...new Set(names)], 'no object twice')
      for (const [, image = ''] of JSON.stringify(objects).matchAll(/"image":"([^"]+)"/g)) {
        t.match(image, /(?::[\w][\w.-]*|@sha256:[0-9a-f]{64})$/, image)
        t.notMatch(image, /:latest$/)
      }
    })
  },
)

await t.test(
  'values that the chart does not know are refused, at each level',
  WITH_HELM,
  async (t) => {
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'))
    const levels: string[] = []
    const visit = (node: Rendered, at: Rendered, path: string): void => {
      const level =
        node['$ref'] === undefined ? node : schema.definitions[node['$ref'].split('/').at(-1)]
      if (level.properties === undefined) return
      // Values that other charts of one parent have in `global` are not ours to refuse.
      if (!path.startsWith('global.')) {
        t.equal(level.additionalProperties, false, `${path}: closed`)
        levels.push(path)
      }
      const optional = ['requests', 'limits', 'claims', 'metadata', 'spec']
      const known = Object.keys(level.properties).filter((key) => !optional.includes(key))
      const written = Object.keys(at).filter((key) => !optional.includes(key))
      t.same(written.toSorted(), known.toSorted(), `${path}: schema and values.yaml say the same`)
      for (const key of written) visit(level.properties[key], at[key], `${path}${key}.`)
    }
    visit(schema, values, '')
    t.ok(levels.length > 20)
    const misspelt = levels.map((path) => [`${path}replicass`, 1])
    const { code, err } = await template(Object.fromEntries(misspelt))
    t.not(code, 0)
    for (const path of levels) {
      const at = path
        .split('.')
        .slice(0, -1)
        .map((name) => `/${name}`)
      t.ok(err.includes(`at '${at.join('')}': additional properties 'replicass' not allowed`), path)
    }
  },
)

await t.test(
  'each toggle takes away or adds what it names, and nothing else',
  WITH_HELM,
  async (t) => {
    const all = new Set(namesOf(await render()))
    const cases: readonly (readonly [Readonly<Record<string, unknown>>, readonly string[]])[] = [
      [
        { 'crds.enabled': false },
        [
          '-CustomResourceDefinition ensembles.tutti.dev',
          '-CustomResourceDefinition models.tutti.dev',
          '-CustomResourceDefinition routers.tutti.dev',
        ],
      ],
      [{ 'operator.podDisruptionBudget.enabled': false }, ['-PodDisruptionBudget tutti-operator']],
      [{ 'operator.replicas': 1 }, ['-PodDisruptionBudget tutti-operator']],
      [{ 'nats.replicas': 3 }, ['+PodDisruptionBudget tutti-nats']],
      [{ 'nats.replicas': 3, 'nats.podDisruptionBudget.enabled': false }, []],
      [
        { 'serviceAccount.create': false, 'serviceAccount.name': 'x' },
        ['-ServiceAccount tutti-operator'],
      ],
      [{ 'rbac.aggregateRoles': false }, ['-ClusterRole tutti-edit', '-ClusterRole tutti-view']],
      [
        { 'networkPolicy.enabled': false },
        [
          '-NetworkPolicy tutti-nats',
          '-NetworkPolicy tutti-operator',
          '-NetworkPolicy tutti-test',
          '-NetworkPolicy tutti-test-models',
        ],
      ],
      [{ 'metrics.enabled': false }, ['-Service tutti-operator-metrics']],
      [{ 'metrics.serviceMonitor.enabled': true }, ['+ServiceMonitor tutti-operator']],
      [{ 'metrics.podMonitor.enabled': true }, ['+PodMonitor tutti-served']],
      [{ 'metrics.prometheusRule.enabled': true }, ['+PrometheusRule tutti']],
      [{ 'metrics.dashboards.enabled': true }, ['+ConfigMap tutti-dashboard']],
      [
        { 'tests.enabled': false },
        [
          '-ConfigMap tutti-test',
          '-Deployment tutti-test-models',
          '-Ensemble tutti-test',
          '-Job tutti-test',
          '-Model tutti-test-first',
          '-Model tutti-test-second',
          '-NetworkPolicy tutti-test',
          '-NetworkPolicy tutti-test-models',
          '-Service tutti-test-models',
        ],
      ],
    ]
    await forEach(cases, async ([values, wanted]) => {
      const now = new Set(namesOf(await render(values)))
      const changes = [
        ...[...all].filter((name) => !now.has(name)).map((name) => `-${name}`),
        ...[...now].filter((name) => !all.has(name)).map((name) => `+${name}`),
      ]
      t.same(changes.toSorted(), wanted, JSON.stringify(values))
    })
    const without = namesOf(await render({ 'rbac.create': false }))
    t.notOk(without.some((name) => /Role(?:Binding)? tutti-operator/.test(name)))
  },
)

await t.test('who has the role view sees what kubectl tutti shows', WITH_HELM, async (t) => {
  const { metadata, rules } = find(await render(), 'ClusterRole', 'tutti-view')
  t.equal(metadata.labels['rbac.authorization.k8s.io/aggregate-to-view'], 'true')
  const verbs = ['get', 'list', 'watch']
  t.match(rules, [
    { apiGroups: ['tutti.dev'], verbs },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs },
  ])
})

await t.test('what the operator is told', WITH_HELM, async (t) => {
  const args = operatorArgsOf(await render())
  for (const wanted of [
    '--nats=tls://tutti-nats.tutti-system.svc:4222',
    '--step-image=tutti/step:0.1.0',
    '--step-python-image=tutti/step-python:0.1.0',
    '--router-image=tutti/router:0.1.0',
    '--allow-host-access=false',
    '--allow-router-image=false',
    '--nats-credential-lifetime=86400',
  ]) {
    t.ok(args.includes(wanted), wanted)
  }
  t.notOk(args.some((arg) => /^--(?:otlp|router-console|step-defaults|router-defaults)/.test(arg)))
  const digest = `sha256:${'0'.repeat(64)}`
  const values = {
    'step.image.digest': digest,
    'step.pythonImage': { repository: 'tutti/step-python', digest },
    'step.cudaImage': { repository: 'tutti/step-cuda', digest },
    'step.pythonCudaImage': { repository: 'tutti/step-python-cuda', digest },
    'global.imageRegistry': 'registry.example/',
    imagePullSecrets: [{ name: 'pull' }],
    'nats.replicas': 3,
    scope: { mode: 'Namespaces', namespaces: ['a', 'b'] },
    'router.console': 'Show',
    'router.defaults.podTemplate': { spec: { priorityClassName: 'high' } },
    'step.defaults.resources': { requests: { cpu: 1 } },
    'networkPolicy.scrapeNamespaces': ['monitoring'],
    operator: { logLevel: 'error', extraArgs: ['--health-port=1'] },
    telemetry: { otlpEndpoint: 'http://c:4318', sampleRatio: 0.00001, headersSecret: 'otlp' },
  }
  const others = operatorArgsOf(await render(values))
  for (const wanted of [
    '--router-defaults={"podTemplate":{"spec":{"priorityClassName":"high"}},"resources":{}}',
    '--step-defaults={"podTemplate":{},"resources":{"requests":{"cpu":1}}}',
    `--step-image=registry.example/tutti/step@${digest}`,
    `--step-python-image=registry.example/tutti/step-python@${digest}`,
    '--image-pull-secret=pull',
    '--watch-namespace=b',
    '--scrape-namespace=monitoring',
    '--nats-cluster-host=tutti-nats-2.tutti-nats-headless.tutti-system.svc:6222',
    '--log-info=false',
    '--log-warning=false',
    '--health-port=1',
    '--otlp-endpoint=http://c:4318',
    '--router-console=Show',
    '--otlp-sample-ratio=1e-05',
    '--otlp-headers-secret=otlp',
  ]) {
    t.ok(others.includes(wanted), wanted)
  }
  const external = operatorArgsOf(
    await render({
      nats: {
        enabled: false,
        external: { urls: ['tls://n:1'], issuerSecret: 's', privateAuthority: true },
      },
    }),
  )
  t.ok(external.includes('--nats=tls://n:1'))
  t.ok(external.includes('--nats-issuer-secret=s'))
  t.ok(external.includes('--nats-private-authority=true'))
  t.notOk(external.some((arg) => /^--nats-(?:cluster|connections)/.test(arg)))
})

function crds(objects: readonly Rendered[]): Rendered[] {
  return objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
}

await t.test('CRDs are those of crds/, and stay if they are to', WITH_HELM, async (t) => {
  for (const keep of [true, false]) {
    for (const crd of crds(await render({ 'crds.keep': keep }))) {
      const policy = crd['metadata'].annotations?.['helm.sh/resource-policy']
      t.equal(policy, keep ? 'keep' : undefined)
      const file = join(CHART, '..', '..', 'crds', `tutti.dev_${crd['spec'].names.plural}.yaml`)
      t.same(crd['spec'], parse(readFileSync(file, 'utf8')).spec)
    }
  }
})

await t.test('the roles view and edit get all kinds of ours', WITH_HELM, async (t) => {
  const objects = await render()
  const resources = (name: string): string[] =>
    find(objects, 'ClusterRole', name)['rules'].flatMap((rule: Rendered) => rule['resources'])
  const plurals = crds(objects).map((crd) => crd['spec'].names.plural)
  t.equal(plurals.length, 3)
  for (const plural of plurals) {
    t.ok(resources('tutti-view').includes(plural))
    t.ok(resources('tutti-view').includes(`${plural}/status`))
    t.ok(resources('tutti-edit').includes(plural))
    for (const part of ['', '/status', '/finalizers']) {
      t.ok(resources('tutti-operator').includes(`${plural}${part}`), `${plural}${part}`)
    }
  }
})

await t.test('rights in no namespace but those that are served', WITH_HELM, async (t) => {
  const scope = { mode: 'Namespaces', namespaces: ['a', 'b'] }
  const objects = await render({ scope })
  t.notOk(objects.some(({ kind }) => kind === 'ClusterRoleBinding'))
  const bindings = objects.filter(
    ({ kind, metadata }) => kind === 'RoleBinding' && metadata.name === 'tutti-operator',
  )
  t.same(
    bindings.map(({ metadata }) => metadata.namespace),
    ['a', 'b'],
  )
})

await t.test('who may not read metrics is told after the installation', WITH_HELM, async (t) => {
  const chart = join(t.testdir({}), 'tutti')
  await cp(CHART, chart, { recursive: true })
  // Helm shows its notes only where there is a cluster to install to.
  const notes = join(chart, 'templates', 'NOTES.txt')
  const text = await readFile(notes, 'utf8')
  await rm(notes)
  const define = `{{- define "test.notes" -}}${text}{{- end -}}`
  await writeFile(join(chart, 'templates', '_notes.tpl'), define)
  const notesFile = 'templates/notes.yaml'
  const args = ['--kube-version=1.34.4', `--show-only=${notesFile}`]
  await writeFile(join(chart, notesFile), 'notes: {{ include "test.notes" . | toJson }}\n')
  const warnings = async (values: Values): Promise<string[]> => {
    const sets = Object.entries(values).map(
      ([key, one]) => `--set-json=${key}=${JSON.stringify(one)}`,
    )
    const run = await helm('template', 'tutti', chart, ...args, ...sets)
    t.equal(run.code, 0, run.err)
    const [{ notes: said } = { notes: '' }] = parseAll(run.out)
    return String(said).match(/networkPolicy\.\w+ is empty/g) ?? []
  }
  const monitors = { 'metrics.serviceMonitor.enabled': true, 'metrics.podMonitor.enabled': true }
  t.same(await warnings({}), [])
  t.same(await warnings(monitors), [
    'networkPolicy.ingressFrom is empty',
    'networkPolicy.scrapeNamespaces is empty',
  ])
  const named = { 'networkPolicy.scrapeNamespaces': ['monitoring'] }
  t.same(await warnings({ ...monitors, ...named }), ['networkPolicy.ingressFrom is empty'])
  t.same(await warnings({ ...monitors, 'networkPolicy.enabled': false }), [])
})

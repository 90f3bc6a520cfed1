// needs: apiserver
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { parse } from 'yaml'
import { CHART, find, helm, PRODUCTION, type Rendered, render } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

await t.test('no value for production is the default already', async (t) => {
  const defaults = parse(await readFile(join(CHART, 'values.yaml'), 'utf8'))
  const check = (value: Rendered, other: Rendered, path: string): void => {
    for (const [name, one] of Object.entries(value)) {
      const at = `${path}${name}`
      // Two of each are what production is about, so the file says so.
      if (name === 'replicas') continue
      if (isObject(one) && isObject(other[name])) check(one, other[name], `${at}.`)
      else if (!path.includes('resources.')) t.notSame(one, other[name], at)
    }
  }
  check(parse(await readFile(PRODUCTION, 'utf8')), defaults, '')
})

function isObject(value: unknown): value is Rendered {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

await t.test('lines that wait for a name are values too', WITH_HELM, async (t) => {
  const text = await readFile(PRODUCTION, 'utf8')
  // A comment that is prose has one space.
  const waiting = /^( *)#(?! \S)(.*)$/gm
  t.ok((text.match(waiting)?.length ?? 0) > 20)
  const file = join(t.testdir({}), 'values.yaml')
  await writeFile(file, text.replaceAll(waiting, '$1$2'))
  const { code, out, err } = await helm('lint', '--strict', `--values=${file}`, CHART)
  t.equal(code, 0, `${out}${err}`)
  const objects = await render({}, `--values=${file}`)
  const { template } = find(objects, 'StatefulSet', 'tutti-nats')['spec']
  t.equal(template.spec.priorityClassName, 'platform')
  for (const [path, one] of scalarsOf(parse(await readFile(file, 'utf8')))) {
    // Values of the operator are in its flags, as JSON too.
    t.ok(JSON.stringify(objects).includes(one), path)
  }
})

/** Paths and texts of all names and addresses. */
function scalarsOf(value: unknown, path = ''): readonly (readonly [string, string])[] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) => scalarsOf(one, `${path}.${name}`))
}

await t.test(
  'a lost node takes one NATS server, whatever the release is called',
  WITH_HELM,
  async (t) => {
    const names = [{}, { nameOverride: 'models', fullnameOverride: 'serving' }]
    for (const values of names) {
      const objects = await render(values, `--values=${PRODUCTION}`)
      const { spec } = find(objects, 'StatefulSet')
      t.equal(spec.replicas, 3)
      const { metadata, spec: pod } = spec.template
      t.equal(pod.topologySpreadConstraints.length, 1)
      const [{ labelSelector, ...constraint }] = pod.topologySpreadConstraints
      t.match(constraint, {
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'DoNotSchedule',
      })
      t.match(metadata.labels, labelSelector.matchLabels, 'it counts the servers')
      for (const { kind, spec: other } of objects) {
        if (kind !== 'Deployment') continue
        t.notMatch(other.template.metadata.labels, labelSelector.matchLabels, 'and nothing else')
      }
    }
  },
)

await t.test('no container for production has less memory than its limit', WITH_HELM, async (t) => {
  for (const { kind, metadata, spec } of await render({}, `--values=${PRODUCTION}`)) {
    if (!['Deployment', 'StatefulSet'].includes(kind) || metadata.annotations !== undefined)
      continue
    for (const { resources } of spec.template.spec.containers) {
      t.equal(resources.requests.memory, resources.limits.memory, metadata.name)
    }
  }
})

import { readFile } from 'node:fs/promises'
import type { ConfigMap, Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { judgeRouterSettings, RouterSettings } from './router-settings.ts'

function configMap(data: Record<string, string>, name = 'router'): Stored<ConfigMap> {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'ns', uid: name, resourceVersion: '1', creationTimestamp: '' },
    data,
  }
}

await t.test('no ConfigMap means the defaults', async (t) => {
  t.same(judgeRouterSettings([]), { isValid: true, settings: {} })
})

await t.test('every key is read', async (t) => {
  const data = {
    replicas: '3',
    image: 'x:1',
    resources: '{"limits":{"memory":"4Gi"}}',
    nodeSelector: '{"a":"b"}',
    tolerations: '[{"operator":"Exists"}]',
    maxInFlightRequests: '10',
    maxInFlightBytes: '1000',
    drainTimeout: '1m30s',
    logVerbose: '1',
    clientNamespaces: 'a,b',
  }
  t.same(Object.keys(data).toSorted(), Object.keys(RouterSettings.shape).toSorted())
  t.match(judgeRouterSettings([configMap(data)]), {
    isValid: true,
    settings: { replicas: 3, drainTimeout: 90_000, clientNamespaces: ['a', 'b'] },
  })
})

const WRONG: readonly (readonly [string, string])[] = [
  ['replicas', '0'],
  ['replicas', '2.5'],
  ['replicas', 'two'],
  ['image', 'a b'],
  ['resources', 'x'],
  ['resources', '{"limit":{}}'],
  ['tolerations', '{}'],
  ['nodeSelector', '{"a b":"c"}'],
  ['drainTimeout', '0s'],
  ['drainTimeout', '30'],
  ['clientNamespaces', 'A'],
  ['maxInFlightBytes', '-1'],
]

for (const [key, value] of WRONG) {
  await t.test(`${key} does not take ${value}`, async (t) => {
    const verdict = judgeRouterSettings([configMap({ [key]: value })])
    t.equal(verdict.isValid, false)
    t.match(verdict, { problem: new RegExp(`^ConfigMap "router", data\\.${key}.*: .`) })
  })
}

await t.test('a key that is not known, and a second ConfigMap, are refused', async (t) => {
  t.match(judgeRouterSettings([configMap({ replica: '2' })]), {
    problem: 'ConfigMap "router", data.replica: there is no such field; did you mean replicas?',
  })
  t.match(judgeRouterSettings([configMap({}, 'b'), configMap({}, 'a')]), {
    problem: /"a" and "b" both have the label/,
    at: { metadata: { name: 'b' } },
  })
})

await t.test('whatever is written, it is taken or refused in one line', async () => {
  const key = fc.oneof(fc.constantFrom(...Object.keys(RouterSettings.shape)), fc.string())
  const value = fc.oneof(fc.string(), fc.json(), fc.nat().map(String))
  fc.assert(
    fc.property(fc.dictionary(key, value), (data) => {
      const verdict = judgeRouterSettings([configMap({ ...data })])
      return verdict.isValid || !verdict.problem.includes('\n')
    }),
  )
})

await t.test('the page for users lists every key', async (t) => {
  const page = await readFile(new URL('../../../docs/ensembles.md', import.meta.url), 'utf8')
  for (const [name, { description }] of Object.entries(RouterSettings.shape)) {
    t.ok(page.includes(`\`${name}\``), name)
    t.ok(page.replaceAll(/\s+/g, ' ').includes(description ?? '?'), `${name}: ${description}`)
  }
})

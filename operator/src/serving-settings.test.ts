import { parseFlags } from '@tutti/chassis'
import t from 'tap'
import { OPERATOR_FLAGS } from './operator-flags.ts'
import { toRouterDefaults, toStepPodSettings } from './serving-settings.ts'

const settingsOf = (...args: readonly string[]) =>
  toStepPodSettings({
    flags: parseFlags(OPERATOR_FLAGS, ['--nats=tls://n:4222', ...args]).values,
    namespace: 'tutti-system',
  })

await t.test('what an installation adds to pods is read as in a Model', async (t) => {
  t.equal(settingsOf().podDefaults, undefined)
  const podDefaults = {
    resources: { requests: { cpu: 1 } },
    podTemplate: { metadata: { labels: { team: 'a' } }, spec: { priorityClassName: 'high' } },
  }
  const json = JSON.stringify(podDefaults)
  t.same(settingsOf(`--step-defaults=${json}`).podDefaults, podDefaults)
  const { values } = parseFlags(OPERATOR_FLAGS, [`--router-defaults=${json}`])
  t.same(toRouterDefaults(values, settingsOf()).podDefaults, podDefaults)
})

await t.test('variables of fetches are a list, each with a value or a Secret', async (t) => {
  t.equal(settingsOf().fetchEnv, undefined)
  const secretKeyRef = { name: 'hub', key: 'token', optional: true }
  const fetchEnv = [
    { name: 'HF_TOKEN', valueFrom: { secretKeyRef } },
    { name: 'HF_ENDPOINT', value: 'https://mirror.example' },
  ]
  t.same(settingsOf(`--fetch-env=${JSON.stringify(fetchEnv)}`).fetchEnv, fetchEnv)
  const cases = {
    '[': /--fetch-env: got what is no JSON \(.*\), want a list$/,
    '{}': /--fetch-env: got an object, want a list/,
    '[{"name":"A"}]': /--fetch-env: .*want one of value and valueFrom/,
    '[{"name":"A=B","value":"c"}]': /--fetch-env: .*name/,
    '[{"name":"A","valueFrom":{"fieldRef":{}}}]': /--fetch-env: .*secretKeyRef/,
  }
  for (const [json, message] of Object.entries(cases)) {
    t.throws(() => settingsOf(`--fetch-env=${json}`), { reason: 'FLAG_INVALID', message }, json)
  }
})

await t.test('ports of a mesh are ports', async (t) => {
  t.same(settingsOf('--mesh-port=15008', '--mesh-port=15012').network.meshPorts, [15_008, 15_012])
  for (const text of ['0', '65536', 'http']) {
    const message = `--mesh-port: got ${text}, want a port, 1 to 65535`
    t.throws(() => settingsOf(`--mesh-port=${text}`), { reason: 'FLAG_INVALID', message })
  }
})

await t.test('what it cannot add stops the operator, which says why', async (t) => {
  const cases = {
    '{': /--step-defaults: got what is no JSON \(.*\), want an object$/,
    '[]': /--step-defaults: got a list, want an object/,
    '{"limits":{}}': /--step-defaults: limits: there is no such field/,
    '{"resources":{"limits":{"memory":"lots"}}}': /--step-defaults: resources\.limits/,
    '{"podTemplate":{"metadata":{"labels":{"tutti.dev/model":"a"}}}}': /belong to the operator/,
    '{"podTemplate":{"spec":{"volumes":[{"name":"a","emptyDir":null}]}}}': /got null at volumes/,
  }
  for (const [json, message] of Object.entries(cases)) {
    const error = { name: 'ServeError', reason: 'FLAG_INVALID', message }
    t.throws(() => settingsOf(`--step-defaults=${json}`), error, json)
  }
})

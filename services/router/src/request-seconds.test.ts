import { parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import { until } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { openServers, SERVER_FLAGS } from '@tutti/server'
import { ServerMetrics } from '@tutti/telemetry'
import t from 'tap'
import { chain, floats, oneToOne, type ScriptedModel, scriptedRouter } from './testing/index.ts'

const model: ScriptedModel = {
  config: oneToOne,
  versions: [1, 3],
  run: (inputs) => {
    const values = [...(inputs.get('X') ?? [])]
    if (values[0] === 99) throw new ServeError('ENGINE_FAILED', 'it broke')
    return new Map([['Y', floats('Y', values)]])
  },
}

await t.test('requests to ensembles and to models count alike, end to end', async (t) => {
  const { router, served, refresh } = await scriptedRouter({
    models: { m: model, other: model },
    ensembles: { E: chain('m', 'm') },
  })
  const metrics = new ServerMetrics()
  const flags = ['--allow-grpc=0', '--allow-metrics=0', '--http-port=0', '--http-address=127.0.0.1']
  const { values } = parseFlags(SERVER_FLAGS, flags)
  const o = { flags: values, metrics, clock: systemClock, log: silentLogger }
  const servers = await openServers({ ...o, backend: router })
  t.teardown(() => servers.close())
  const infer = async (path: string, name: string, value = 1) => {
    const input = { name, datatype: 'FP32', shape: [1], data: [value] }
    const url = `http://127.0.0.1:${servers.ports.httpPort}/v2/models/${path}/infer`
    await (await fetch(url, { method: 'POST', body: JSON.stringify({ inputs: [input] }) })).text()
  }
  const counts = async () => {
    const lines = (await metrics.render()).matchAll(
      /^tutti_request_seconds_count\{model="(.*)",version="(.*)",protocol="http",code="(.*)"\} (\d+)$/gm,
    )
    return [...lines].map(([, ...words]) => words.join(' ')).toSorted()
  }
  await infer('E', 'IN')
  await infer('E', 'IN', 99)
  await infer('E', 'X')
  await infer('m', 'X')
  await infer('m/versions/1', 'X')
  await infer('m/versions/2', 'X')
  await infer('guess', 'X')
  await infer('other', 'X')
  const wanted = [
    '  NOT_FOUND 1',
    'E 1 INTERNAL 1',
    'E 1 INVALID_ARGUMENT 1',
    'E 1 OK 1',
    'm  NOT_FOUND 1',
    'm 1 OK 1',
    'm 3 OK 1',
  ]
  const counted = async (all: readonly string[], why: string) => {
    await until(why, async () => (await counts()).join() === all.join())
    t.same(await counts(), all, why)
  }
  await counted([...wanted, 'other 3 OK 1'], 'all count')
  served.delete('other')
  refresh()
  router.view.remove('step-1')
  await infer('E', 'IN')
  const after = [...wanted, 'other 3 OK 1', 'E  UNAVAILABLE 1'].toSorted()
  await counted(after, 'an outage is seen under the name')
  t.same(await counts(), after, 'and what was served before stays')
})

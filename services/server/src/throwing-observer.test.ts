import { createLogger, parseFlags, systemClock } from '@tutti/chassis'
import { InferenceClient } from '@tutti/protocol/client'
import { echo, ScriptedBackend } from '@tutti/serving/testing'
import { ServerMetrics } from '@tutti/telemetry'
import { OBSERVED_EVENTS, throwingObserver } from '@tutti/telemetry/testing'
import t from 'tap'
import { SERVER_FLAGS } from './server-flags.ts'
import { openServers } from './servers.ts'

for (const event of OBSERVED_EVENTS) {
  await t.test(`clients get their answers if an observer throws at ${event}`, async (t) => {
    const lines: Record<string, unknown>[] = []
    const write = (line: string): void => void lines.push(JSON.parse(line))
    const ports = ['grpc', 'http', 'metrics'].flatMap((name) => [
      `--${name}-port=0`,
      `--${name}-address=127.0.0.1`,
    ])
    const servers = await openServers({
      flags: parseFlags(SERVER_FLAGS, ports).values,
      backend: new ScriptedBackend({ m: { script: echo() } }),
      metrics: new ServerMetrics(),
      observers: [throwingObserver(event)],
      clock: systemClock,
      log: createLogger({ level: 'info', name: 'test', destination: { write } }),
    })
    const client = new InferenceClient({ address: `127.0.0.1:${servers.ports.grpcPort}` })
    t.teardown(async () => {
      client.close()
      await servers.close()
    })
    for (let i = 0; i < 3; i += 1) {
      const error = await new Promise((resolve) => {
        client.objects.ModelInfer({ model_name: 'm' }, resolve)
      })
      t.equal(error, null)
      const url = `http://127.0.0.1:${servers.ports.httpPort}/v2/models/m/infer`
      const answer = await fetch(url, { method: 'POST', body: '{"inputs":[]}' })
      t.equal(answer.status, 200, await answer.text())
    }
    const stream = client.objects.ModelStreamInfer()
    for (let i = 0; i < 2; i += 1) stream.write({ model_name: 'm' })
    stream.end()
    const answers: { error_message?: string }[] = []
    for await (const answer of stream) answers.push(answer)
    t.same(
      answers.map(({ error_message }) => error_message ?? ''),
      ['', ''],
    )
    t.equal(await servers.drain({ timeoutMs: 10_000 }), true)
    const logged = lines.filter((line) => line['event'] === event)
    // Nothing of clients' requests waits: those of model versions do.
    const count = event === 'queued' || event === 'dequeued' ? 0 : 1
    t.equal(logged.length, count, 'one line of all listeners')
    t.match(
      logged.slice(0, 1),
      count === 0 ? [] : [{ level: 'error', error: { message: `thrown at ${event}` } }],
    )
  })
}

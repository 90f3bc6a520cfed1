import type { Engine } from '@tutti/backends'
import { createHealth, createLogger, loadTracingSettings, parseFlags } from '@tutti/chassis'
import type { Test } from 'tap'
import { startStep } from '../serve/start-step.ts'
import { STEP_FLAGS } from '../serve/step-flags.ts'
import { ScriptedStepEndpoint } from './scripted-endpoint.ts'

/**
 * Starts a step as its program does, with servers on free ports of this machine and a broker that a test drives. It is closed with
 * the test.
 */
export async function startTestStep(
  t: Test,
  argv: readonly string[],
  o: { readonly member?: ScriptedStepEndpoint; readonly engines?: readonly Engine[] } = {},
) {
  const member = o.member ?? new ScriptedStepEndpoint()
  const loopback = ['grpc', 'http', 'metrics'].flatMap((server) => [
    `--${server}-address=127.0.0.1`,
    `--${server}-port=0`,
  ])
  const nats = '--nats=nats://nowhere.invalid:4222'
  const { values: flags } = parseFlags(STEP_FLAGS, [nats, ...loopback, ...argv])
  const health = createHealth()
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const signal = new AbortController().signal
  const settings = loadTracingSettings({})
  const running = await startStep({
    flags,
    settings,
    log,
    health,
    signal,
    openEndpoint: member.open,
    ...(o.engines !== undefined && { engines: o.engines }),
  })
  t.teardown(() => running.close())
  health.release('starting')
  const ready = lines.map((line) => JSON.parse(line)).find((l) => l.httpPort !== undefined)
  return { running, member, health, ready, lines }
}

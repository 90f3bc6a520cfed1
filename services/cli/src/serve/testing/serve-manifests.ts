import { join } from 'node:path'
import {
  createHealth,
  createLogger,
  loadTracingSettings,
  parseFlags,
  systemClock,
} from '@tutti/chassis'
import type { Test } from 'tap'
import { openManifests } from '../open-manifests.ts'
import { startServe } from '../serve.ts'
import { SERVE_FLAGS } from '../serve-flags.ts'

const ROOT = join(import.meta.dirname, '../../../../..')
/** The models that storage `pvc://fixtures` has. */
export const FIXTURES: string = join(ROOT, 'model_repository/.variants/fixtures/basic')

/** The manifest of a Model of an ONNX file. */
export const model = (name: string, storageUri: string, more = ''): string => `
apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: {name: ${name}}
spec:
  modelName: ${name.replaceAll('-', '_')}
  modelFormat: {name: onnx}
  storageUri: ${storageUri}
${more}`

/** Serves manifests as the command does, on free ports. */
export async function serve(t: Test, manifests: readonly string[], ...argv: string[]) {
  const folder = t.testdir({ 'all.yaml': manifests.join('\n---\n') })
  const loopback = ['grpc', 'http', 'metrics'].flatMap((server) => [
    `--${server}-address=127.0.0.1`,
    `--${server}-port=0`,
  ])
  const { values: flags } = parseFlags(SERVE_FLAGS, [
    `-f=${folder}/all.yaml`,
    `--storage-map=pvc://fixtures=${FIXTURES}`,
    ...loopback,
    ...argv,
  ])
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const { signal } = new AbortController()
  let told = ''
  const opened = await openManifests({
    flags,
    input: undefined,
    err: (text) => {
      told += text
    },
    cache: join(folder, 'cache'),
    env: {},
    clock: systemClock,
    log,
    signal,
  }).catch((error: unknown) => {
    throw Object.assign(new Error(told), { cause: error })
  })
  const health = createHealth()
  const settings = loadTracingSettings({})
  const running = await startServe({ flags, settings, log, health, manifests: opened })
  t.teardown(() => running.close())
  const messages = lines.map((line) => JSON.parse(line))
  const { httpPort, metricsPort } = messages.find((line) => line.httpPort !== undefined)
  return { port: Number(httpPort), metricsPort, messages, folder, running }
}

/** Asks a server over HTTP. @returns the status and the body. */
export async function ask(
  port: number,
  path: string,
  body?: object,
): Promise<readonly [number, unknown]> {
  const post = { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, body === undefined ? {} : post)
  return [answer.status, JSON.parse(await answer.text())]
}

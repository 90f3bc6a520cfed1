import { type StartedProcess, until } from '@tutti/chassis/testing'
import type { InferenceClient } from '@tutti/protocol/client'
import { ask as call } from '../grpc-client.ts'
import { parseLine, type Target } from '../serving.ts'

/** Waits until each target has each of the models ready. */
export async function untilReady(
  targets: readonly Target[],
  models: readonly string[],
): Promise<void> {
  for (const { httpPort } of targets) {
    for (const model of models) {
      await until(`${model} is ready`, () =>
        isOk(`http://127.0.0.1:${httpPort}/v2/models/${model}/ready`),
      )
    }
  }
}

/** True if the address answers with 200; false for anything else, such as no server. */
export async function isOk(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url)
    await answer.arrayBuffer()
    return answer.status === 200
  } catch {
    // No server listens.
    return false
  }
}

/** How many executions of requests a process has answered successfully; of all versions of the model. */
export async function successes(client: InferenceClient, name: string): Promise<number> {
  const { model_stats: versions } = await call(client, 'ModelStatistics', { name })
  return versions.reduce((sum, { inference_stats: o }) => sum + Number(o?.success?.count ?? 0), 0)
}

/** A place in what a process logs. */
export function mark(process: StartedProcess): number {
  return process.lines.length
}

/** Waits for a log line after the mark. @returns its place, a mark for what follows it. */
export function logged(
  process: StartedProcess,
  from: number,
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const wanted = `a line "${message}" ${JSON.stringify(fields)} is logged`
  const since = (): string => process.lines.slice(from).slice(-20).join('\n')
  return until(
    () => `${wanted}; instead came\n${since()}`,
    () => {
      const place = process.lines.findIndex((text, i) => {
        if (i < from) return false
        const line = parseLine(text)
        return (
          line['message'] === message &&
          Object.entries(fields).every(([name, value]) => line[name] === value)
        )
      })
      return place < 0 ? undefined : place + 1
    },
  )
}

/** A process's own word of how it ended, for a test's report: nothing if it did in order. */
export function howItEnded(
  process: Pick<StartedProcess, 'lines'>,
  { code, signal }: Awaited<StartedProcess['exited']>,
): string {
  if (code === 0 && signal === null) return ''
  return `ended with ${code ?? signal}:\n${process.lines.slice(-30).join('\n')}`
}

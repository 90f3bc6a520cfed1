import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_MS = 250

/**
 * Works on tasks in their order, `jobs` at a time and up to `most` while the processor has room, but on none before what it needs is
 * there. What cannot be had fails all at once.
 *
 * @template {{ needs: readonly string[] }} T
 * @param {readonly T[]} tasks
 * @param {{ jobs: number, most?: number, processor?: ReturnType<typeof import('./processor-room.mjs').watchProcessor>,
 *   signal: AbortSignal, provide: (needs: readonly string[]) => Promise<NodeJS.ProcessEnv>, fail: (reason: unknown) => void }} o -
 *   `fail` has to abort `signal`; `processor` is asked only where `most` is more than `jobs`.
 * @param {(task: T, env: NodeJS.ProcessEnv) => Promise<void>} work
 */
export async function runPool(
  tasks,
  { jobs, most = jobs, processor, signal, provide, fail },
  work,
) {
  const waiting = tasks.map((task) => prepare(task, provide, fail))
  const running = new Set()
  const start = ({ task, env }) => {
    const done = work(task, env).finally(() => running.delete(done))
    done.catch(fail)
    running.add(done)
    processor?.begin()
  }
  const mayStart = () => running.size < jobs || (running.size < most && processor.hasRoom())
  while (waiting.length > 0) {
    signal.throwIfAborted()
    const index = waiting.findIndex(({ env }) => env !== undefined)
    if (index >= 0 && mayStart()) {
      start(...waiting.splice(index, 1))
      continue
    }
    const looks = index >= 0 && running.size < most
    // oxlint-disable-next-line no-await-in-loop -- until something has changed
    await Promise.race([
      ...running,
      ...(index < 0 ? waiting.map(({ ready }) => ready) : []),
      ...(looks ? [sleep(LOOK_MS)] : []),
    ])
  }
  await Promise.all(running)
  signal.throwIfAborted()
}

/** A task whose `env` is there once what it needs is. */
function prepare(task, provide, fail) {
  const entry = { task, env: undefined }
  const provideAll = async () => {
    entry.env = await provide(task.needs)
  }
  entry.ready = provideAll()
  entry.ready.catch(fail)
  return entry
}

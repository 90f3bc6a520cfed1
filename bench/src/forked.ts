import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A process of our own code that answers questions, one at a time. It cannot outlive this one. */
export interface ForkedProcess {
  readonly pid: number
  /** @returns what the process answers, which is what its module says. @throws Error if it fails or ends. */
  ask<A>(numbers?: readonly number[]): Promise<A>
  stop(): Promise<void>
}

/** The answer of the process: a result, or why there is none. */
type Reply = { readonly result: unknown } | { readonly error: string }

/**
 * Starts a module of this folder as a process and waits until it calls `answerParent`.
 *
 * @param module - for example `./edge-caller.js`.
 */
export async function startForked(
  module: string,
  args: readonly string[],
  nodeFlags: readonly string[] = [],
): Promise<ForkedProcess> {
  const file = fileURLToPath(new URL(module, import.meta.url))
  const child = fork(file, [...args], { execArgv: [...nodeFlags], serialization: 'advanced' })
  await nextReply(child)
  return {
    pid: child.pid ?? Number.NaN,
    ask: async <A>(numbers: readonly number[] = []) => {
      const reply = nextReply<A>(child)
      child.send(numbers)
      return await reply
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = new Promise((resolve) => child.once('exit', resolve))
      // Not by a signal: a process that ends by itself writes its profile.
      child.disconnect()
      await exited
    },
  }
}

function nextReply<A>(child: ChildProcess): Promise<A> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => {
      child.off('message', onMessage)
      reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}`))
    }
    const onMessage = (reply: { readonly result: A } | { readonly error: string }): void => {
      child.off('exit', onExit)
      if ('error' in reply) reject(new Error(reply.error))
      else resolve(reply.result)
    }
    child.once('exit', onExit)
    child.once('message', onMessage)
  })
}

/** In a forked process: says that it is ready, and answers what it is asked until the parent lets go of it. */
export function answerParent(answer: (numbers: readonly number[]) => Promise<unknown>): void {
  process.on('message', (numbers: readonly number[]) => {
    answer(numbers).then(
      (result) => tellParent({ result }),
      (error: unknown) => tellParent({ error: String(error) }),
    )
  })
  process.once('disconnect', () => process.exit())
  tellParent({ result: undefined })
}

function tellParent(message: Reply): void {
  process.send?.(message)
}

import { createRequire } from 'node:module'
import { workerData } from 'node:worker_threads'
import type koffiModule from 'koffi'
import {
  CALL,
  callAt,
  DONE,
  END_THREAD,
  openMailbox,
  POSTED,
  type RunThreadData,
  THREAD_CALLS,
} from './thread-mailbox.ts'

/*
 * A thread that makes calls of ONNX Runtime's C API, one after the other. It knows numbers only: what they point to is kept alive
 * by the thread that posted the call.
 */

/** koffi runs native code on a stack of its own. Graphs with deep subgraphs need more than the 2 MiB that it takes by default. */
const STACK_BYTES = 8 * 1024 * 1024
/** A thread that sleeps looks after its inspector so often. */
const SLEEP_MS = 1000

const koffi: typeof koffiModule = createRequire(import.meta.url)('koffi')
koffi.config({ sync_stack_size: STACK_BYTES })
// It makes that stack when it loads its first library.
koffi.load(null)

const { memory, functions }: RunThreadData = workerData
const { header, calls } = openMailbox(memory)
const ADDRESS = 'uintptr_t'
const natives = THREAD_CALLS.map(({ parameters: count, hasResult }, i) => {
  const parameters = Array.from({ length: count }, () => ADDRESS)
  const type = koffi.proto(hasResult ? ADDRESS : 'void', parameters)
  const native: (...args: number[]) => unknown = koffi.decode(functions[i], type)
  return { native, count }
})

/** Reads the clock of `monotonicNs`, whose package would take more memory than everything else in this thread. */
function nowNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e9 + ns
}

/** @returns false if the thread is to end. */
function makeCall(at: number): boolean {
  const which = calls[at + CALL.FUNCTION] ?? END_THREAD
  const call = natives[which]
  if (call === undefined) return false
  const begin = at + CALL.ARGUMENTS
  const args = calls.subarray(begin, begin + call.count)
  calls[at + CALL.BEGIN] = nowNs()
  const result = call.native(...args)
  calls[at + CALL.END] = nowNs()
  calls[at + CALL.RESULT] = Number(result ?? 0)
  return true
}

let done = 0

function work(): void {
  for (;;) {
    if (Atomics.load(header, POSTED) === done) {
      if (Atomics.wait(header, POSTED, done, SLEEP_MS) !== 'timed-out') continue
      setImmediate(work)
      return
    }
    if (!makeCall(callAt(done))) return
    done = (done + 1) | 0
    Atomics.store(header, DONE, done)
    Atomics.notify(header, DONE)
  }
}

work()

// Loaded before a program (`--import`): writes a line for each turn of its event loop that takes long.
import { isMainThread } from 'node:worker_threads'

/** Processor time of the thread that serves, which no other load adds to. */
const LONG_MS = 50
/** Between two looks. A timer runs once in a turn, so a look sees at most so much more than one turn. */
const LOOK_MS = 5

if (isMainThread) {
  let before = process.threadCpuUsage()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    const ms = Math.round((user + system) / 1000)
    if (ms >= LONG_MS) process.stderr.write(`${JSON.stringify({ message: 'long turn', ms })}\n`)
  }, LOOK_MS).unref()
}

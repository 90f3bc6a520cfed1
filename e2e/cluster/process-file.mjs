import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 20
const LIMIT_MS = 10_000

/** Notes a process: its number and when it started, so that nothing is taken for it that got the same number later. */
export function saveProcess(path, pid) {
  writeFileSync(path, JSON.stringify({ pid, startedAt: startOf(pid) }))
}

/** The number of the process of a file, or undefined if there is no file, or the process has ended. */
export function livingProcess(path) {
  let saved
  try {
    saved = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    // Never written, or not to its end.
    return undefined
  }
  const startedAt = startOf(saved.pid)
  return startedAt !== undefined && startedAt === saved.startedAt ? saved.pid : undefined
}

/** Kills the process of a file, if it lives, by its first child, process 1 of the namespace that it has unshared. */
export async function killProcess(path) {
  const pid = livingProcess(path)
  if (pid !== undefined) {
    kill(firstChild(pid) ?? pid)
    const giveUpAt = performance.now() + LIMIT_MS
    while (livingProcess(path) === pid) {
      if (performance.now() > giveUpAt) throw new Error(`process ${pid} does not end`)
      await sleep(POLL_MS)
    }
  }
  rmSync(path, { force: true })
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // It has just ended by itself.
    if (error.code !== 'ESRCH') throw error
  }
}

/** The first child of a process; undefined if it has none, or has ended. */
export function firstChild(pid) {
  let children
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  } catch {
    return undefined
  }
  return children === '' ? undefined : Number(children.split(' ')[0])
}

/** When a process started, by which it is told from a later one with the same number; undefined once it has ended. */
function startOf(pid) {
  let stat
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // Behind the name, which may have any character: the state, and as the twentieth the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? undefined : fields[19]
}

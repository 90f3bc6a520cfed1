import { readFileSync } from 'node:fs'

/**
 * When a process started, by which it is told from a later one with the same number.
 *
 * @param {number} pid
 * @returns {string | undefined} in ticks since the machine started; undefined for a process that has ended, waited for or not, and
 * on machines without /proc.
 */
export function startOf(pid) {
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

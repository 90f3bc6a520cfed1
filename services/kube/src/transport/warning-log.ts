import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from '@tutti/chassis'
import { KubeEvents } from '../log-events.ts'

/** Different texts that are remembered; a server has a few. */
const MOST_WARNINGS = 100

/** Logs what an API server warns of in its answers (a version that is going, say), each text once. */
export function createWarningLog(log: Logger): (headers: IncomingHttpHeaders) => void {
  const events = new KubeEvents(log)
  const seen = new Set<string>()
  return (headers) => {
    const warning = headers['warning']
    if (warning === undefined || seen.has(warning) || seen.size === MOST_WARNINGS) return
    seen.add(warning)
    events.serverWarned(warning)
  }
}

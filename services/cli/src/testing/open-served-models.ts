import { loadTracingSettings, silentLogger, systemClock } from '@tutti/chassis'
import { openProcessBase } from '@tutti/server'
import { type ModelServerOptions, openModelServer } from '../serve/model-server.ts'

/** Opens the step and the router of `tutti serve`, without servers. The caller closes them with `close`. */
export async function openServedModels(o: ModelServerOptions) {
  const opened = new AsyncDisposableStack()
  const stopping = new AbortController()
  const settings = loadTracingSettings({})
  const given = { flags: o.flags, settings, log: silentLogger, clock: systemClock }
  const shared = await openProcessBase(given, { opened, stopping: stopping.signal })
  const server = await openModelServer(shared, o)
  const close = async (): Promise<void> => {
    stopping.abort()
    await opened.disposeAsync()
  }
  return { ...server, close }
}

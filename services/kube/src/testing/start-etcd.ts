import { join } from 'node:path'
import { onFreePort, startProcess } from '@tutti/chassis/testing'

export type Etcd = Awaited<ReturnType<typeof startEtcd>>

/** Starts etcd on a free port. @param bin - folder of the program. @param folder - folder in which etcd makes its data folder. */
export async function startEtcd(bin: string, folder: string) {
  return await onFreePort(async (port) => {
    const url = `http://127.0.0.1:${port}`
    const started = await startProcess(
      join(bin, 'etcd'),
      [
        `--data-dir=${join(folder, 'etcd')}`,
        '--unsafe-no-fsync',
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        '--listen-peer-urls=http://127.0.0.1:0',
        '--log-level=info',
      ],
      { readyWhen: (line) => line.includes('ready to serve client requests'), cwd: folder },
    )
    return {
      url,
      process: started,
      /** Makes etcd forget all earlier versions. */
      compact: () => compact(url),
    }
  })
}

async function compact(url: string): Promise<void> {
  const at = await ask(url, '/v3/kv/range', { key: 'AA==', limit: '1' })
  const revision = Number((at['header'] as { revision: string }).revision)
  await ask(url, '/v3/kv/compaction', { revision: String(revision), physical: true })
}

async function ask(url: string, path: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(new URL(path, url), { method: 'POST', body: JSON.stringify(body) })
  const parsed: unknown = await answer.json()
  if (!answer.ok) throw new Error(`etcd ${path}: ${JSON.stringify(parsed)}`)
  return parsed as Record<string, unknown>
}

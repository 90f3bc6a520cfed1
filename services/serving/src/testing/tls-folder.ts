import { copyFile, mkdir, readFile, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestAuthority } from '@tutti/chassis/testing'
import type { TlsFiles, TlsListener } from '../listeners/tls-flags.ts'

const NAMES = ['DNS:localhost', 'IP:127.0.0.1']

/** Creates TLS files as a mounted Secret has them: behind a link that is replaced when a file changes. */
export async function createTlsFolder(folder: string) {
  const authority = await createTestAuthority(folder)
  let written = 0
  const path = (name: string): string => join(folder, 'data', name)
  /** Issues a certificate, and puts it in the place of the one before. @param o.root - of the clients. */
  const renew = async (o: { readonly key?: string; readonly root?: string } = {}) => {
    written += 1
    const issued = await authority.issue(`server${written}`, { names: NAMES })
    const into = join(folder, `data${written}`)
    await mkdir(into)
    await copyFile(issued.cert, join(into, 'tls.crt'))
    await copyFile(o.key ?? issued.key, join(into, 'tls.key'))
    await copyFile(o.root ?? authority.caFile, join(into, 'ca.crt'))
    await symlink(into, join(folder, 'next'))
    await rename(join(folder, 'next'), join(folder, 'data'))
  }
  await renew()
  const pair = { cert: path('tls.crt'), key: path('tls.key') }
  return {
    renew,
    caFile: authority.caFile,
    ca: await readFile(authority.caFile, 'utf8'),
    files: (listener: TlsListener): TlsFiles => ({ listener, ...pair }),
    mutualFiles: (listener: TlsListener): TlsFiles => ({ listener, ...pair, root: path('ca.crt') }),
    /** Texts of a client's certificate and key. */
    client: async (name: string) => {
      const { cert, key } = await authority.issue(name)
      return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
    },
  }
}

import { existsSync } from 'node:fs'
import { appendFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { command } from './own-namespaces.ts'
import type { Manner, Place } from './place.ts'

/** Options of a small disk. */
export const SMALL_DISK = 'size=8m,nr_inodes=200'
const FILLING = 'filling-'

/** Leaves neither bytes nor files on a small disk. */
export async function fillDisk(folder: string): Promise<void> {
  const bytes = new Uint8Array(1 << 24)
  for (let i = 0; await fits(join(folder, `${FILLING}${i}`), i === 0 ? bytes : ''); i += 1);
}

/** Takes what `fillDisk` has left. */
export async function clearDisk(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(FILLING))
  await Promise.all(names.map((name) => rm(join(folder, name))))
}

/** True unless there is no room for another file; the first is as large as fits. */
async function fits(file: string, content: Uint8Array | string): Promise<boolean> {
  const { length } = content
  await untilFull(() => writeFile(file, content))
  return length > 0 || existsSync(file)
}

/** @throws what is no sign of a full disk. */
async function untilFull(write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
  }
}

const LOG_FOLDER = '/run/log'
const LOG = join(LOG_FOLDER, 'log')
const PAGE_BYTES = 4096

/** A process logs to a file on a small disk, from which the test reads it. */
export const fullLog = {
  prepare: async (place: Place): Promise<void> => {
    await mkdir(LOG_FOLDER)
    await command('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', LOG_FOLDER)
    await writeFile(LOG, '')
    const script = `tail -n +1 -f ${LOG} & exec "$@" >> ${LOG} 2>&1`
    await place.restart('SIGTERM', { before: ['sh', '-c', script, 'sh'] })
  },
  /** Not one byte more fits: the last page of the file is filled too. */
  fill: async (): Promise<void> => {
    await untilFull(() => writeFile(join(LOG_FOLDER, 'bytes'), new Uint8Array(1 << 20)))
    const { size } = await stat(LOG)
    await appendFile(LOG, '\n'.repeat((PAGE_BYTES - (size % PAGE_BYTES)) % PAGE_BYTES))
  },
}

/** A start with a reader of the log that ends once the process is ready. */
export const readerlessLog: Manner = {
  before: ['bash', '-c', 'exec "$@" > >(sed -u "/server ready/q") 2>&1', 'bash'],
}

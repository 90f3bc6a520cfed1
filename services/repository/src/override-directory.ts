import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A directory that holds one model of a load request. */
export interface OverrideDirectory {
  /** Absolute path of the model directory; its last part is the model's name. */
  readonly path: string
  /** Deletes it; an error is nobody's to handle any more, the next start cleans up. */
  remove(): Promise<void>
}

const PREFIX = 'tutti-models-'

/**
 * The private temporary directories of one process for models that came with load requests. Their names say whose they are, so
 * that those of processes that died can be told from those in use.
 */
export class OverrideDirectories {
  readonly #parent: string
  readonly #owner: string
  #count = 0
  #root: Promise<string> | undefined

  constructor(o: { readonly parent?: string; readonly pid?: number } = {}) {
    this.#parent = o.parent ?? tmpdir()
    this.#owner = ownerName(o.pid ?? process.pid)
  }

  /** Writes a model's files, readable for this user alone. @param files - checked paths -> contents. */
  async write(name: string, files: ReadonlyMap<string, Uint8Array>): Promise<OverrideDirectory> {
    this.#root ??= this.#makeRoot()
    const container = join(await this.#root, String(this.#count++))
    const path = join(container, name)
    const remove = async (): Promise<void> => {
      await rm(container, { recursive: true, force: true }).catch(() => {})
    }
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      for (const [file, contents] of files) {
        const target = join(path, file)
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await writeFile(target, contents, { flag: 'wx', mode: 0o600 })
      }
      return { path, remove }
    } catch (error) {
      await remove()
      throw error
    }
  }

  /** Deletes what processes of this machine left behind that are no more. */
  async removeStale(): Promise<void> {
    const names = await readdir(this.#parent).catch((): string[] => [])
    for (const name of names) {
      if (!isStale(name)) continue
      const path = join(this.#parent, name)
      const found = await lstat(path).catch(() => undefined)
      // The directory for temporary files is everybody's: what is not ours is left alone.
      if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) continue
      await rm(path, { recursive: true, force: true }).catch(() => {})
    }
  }

  /** Deletes all of this process. */
  async close(): Promise<void> {
    const root = await this.#root?.catch(() => undefined)
    this.#root = undefined
    if (root !== undefined) await rm(root, { recursive: true, force: true }).catch(() => {})
  }

  async #makeRoot(): Promise<string> {
    const root = await mkdtemp(join(this.#parent, `${PREFIX}${this.#owner}-`))
    await chmod(root, 0o700)
    return root
  }
}

/** `<place>-<pid>-<start>`: unique among the processes that may share a directory for temporary files. */
function ownerName(pid: number): string {
  return `${placeOf()}-${pid}-${startOf(pid) ?? 0}`
}

/** The machine and the name space in which process ids mean something: containers may share a directory. */
function placeOf(): string {
  return createHash('sha256').update(`${hostname()} ${pidNamespace()}`).digest('hex').slice(0, 12)
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    // No Linux: there is one name space.
    return ''
  }
}

/** When a process started, in clock ticks since the boot: a process id alone may come again. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may hold anything; field 22 is the 20th after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

function isStale(name: string): boolean {
  const found = /^tutti-models-([0-9a-f]{12})-(\d+)-(\d+)-[^-]+$/.exec(name)
  if (found === null || found[1] !== placeOf()) return false
  const pid = Number(found[2])
  return isGone(pid) || (found[3] !== '0' && startOf(pid) !== found[3])
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

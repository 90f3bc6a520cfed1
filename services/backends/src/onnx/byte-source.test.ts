import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openFileSource } from './byte-source.ts'

await t.test(
  'what is no regular file is refused, and a named pipe is not waited for',
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'tutti-source-'))
    t.teardown(() => rm(directory, { recursive: true, force: true }))
    await mkdir(join(directory, 'folder'))
    execFileSync('mkfifo', [join(directory, 'pipe')])
    for (const name of ['folder', 'pipe']) {
      await t.rejects(openFileSource(join(directory, name)), {
        reason: 'MODEL_LOAD_FAILED',
        message: `model file '${join(directory, name)}' is not a regular file`,
      })
    }
    await t.rejects(openFileSource(join(directory, 'absent')), {
      reason: 'MODEL_LOAD_FAILED',
      message: `cannot read model file '${join(directory, 'absent')}'`,
    })
  },
)

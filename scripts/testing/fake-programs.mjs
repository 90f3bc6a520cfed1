import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Puts programs that are shell scripts into a folder, and gives it back. */
export function fakePrograms(folder, scripts) {
  mkdirSync(folder, { recursive: true })
  for (const [program, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  return folder
}

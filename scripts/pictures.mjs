// Makes the pictures of the documentation again: npm run pictures. Those of the console need chromium; CONTRIBUTING.md has the list.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { FACE } from './demo/restore-face.mjs'
import { startServer } from './demo/start-tutti.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { ensurePython } from './setup/python.mjs'
import { runTests } from './testing/run-tests.mjs'

const root = resolve(import.meta.dirname, '..')
const images = join(root, 'docs', 'images')
/** The tests that show the console, each as far as a picture of it. */
const CONSOLE_TESTS = ['router', 'try', 'try-stream', 'views'].map(
  (name) => `e2e/src/console/${name}.test.ts`,
)
/** Bytes of a picture: a clone of the repository takes all of them. */
const LARGEST = 150_000

const JPEG =
  "import sys; from PIL import Image; Image.open(sys.argv[1]).convert('RGB').save(sys.argv[2], quality=85, optimize=True)"
/** By this filter alone the picture stays as it was when the example's answer was made. */
const HALF =
  'import sys; from PIL import Image; i = Image.open(sys.argv[1]); i.resize((i.width // 2, i.height // 2), Image.Resampling.BOX).save(sys.argv[2], optimize=True)'

await runScript(async () => {
  process.chdir(root)
  const code = await pictureConsole()
  if (code !== 0) return code
  await pictureFace()
  execFileSync(process.execPath, [join(root, 'scripts', 'gen.mjs')], { stdio: 'inherit' })
  return 0
})

/** The views of the console that pages show. */
async function pictureConsole() {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-pictures-'))
  try {
    const env = { TUTTI_CONSOLE_PICTURES: folder }
    const code = await runTests({ root, files: CONSOLE_TESTS, env })
    if (code !== 0) return code
    const shown = readFileSync(join(root, 'docs', 'console.md'), 'utf8')
    for (const [, name] of shown.matchAll(/\]\(images\/(console-[\w-]+\.png)\)/g)) {
      const made = join(folder, name)
      if (!existsSync(made)) throw new SetupFailure(`${name} was not made: is chromium here?`)
      const { size } = statSync(made)
      if (size > LARGEST)
        throw new SetupFailure(`${name} has ${size} bytes, want at most ${LARGEST}`)
      copyFileSync(made, join(images, name))
    }
    return 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * The picture that the demo restores, side by side with its answer, and the input of the example. The example's expected answer
 * stays: a test compares with it, so a regression must not become what is expected.
 */
async function pictureFace() {
  const python = await ensurePython(join(root, 'scripts', 'test-requirements.txt'))
  const run = (program, ...args) =>
    execFileSync(python, ['-c', program, ...args], { stdio: 'inherit' })
  const { servers, stop } = await startServer([FACE], { keep: false })
  try {
    await FACE.show(servers[0])
    run(JPEG, 'out/side-by-side.png', 'docs/images/face-before-after.jpg')
    run(HALF, 'model_repository/.samples/astronaut-degraded.png', 'examples/face/input.png')
  } finally {
    await stop()
  }
}

// `npm run tutti -- COMMAND ...`: the command line, installed and built first, in the folder where npm was called.
import { fileURLToPath } from 'node:url'

// npm runs scripts in the root of the checkout; relative paths are meant from where the user stands.
process.chdir(process.env.INIT_CWD ?? process.cwd())
await import(fileURLToPath(new URL('../services/cli/dist/main.js', import.meta.url)))

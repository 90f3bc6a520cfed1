import { z } from 'zod'

// The page's policy lets nothing make code of text. Imported before all schemas, which try it while they are made.
z.config({ jitless: true })

import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// The page of "regard serve", committed too.
export default defineConfig({
  root: 'serving',
  publicDir: '../public',
  plugins: [svelte({ configFile: '../svelte.config.js' })],
  base: './',
  build: {
    outDir: process.env.REGARD_SERVING_PAGE ?? '../../src/regard/serving/page',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8000' } },
})

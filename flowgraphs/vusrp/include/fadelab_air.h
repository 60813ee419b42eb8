/* The air of virtual USRPs, for programs that set it up and look at it. README.md has the model behind the numbers.
 *
 * Ports are "*", "V1" or "V1:0". Functions return 0, or -1 after an error that fadelab_air_error() tells in one line.
 * The structures have the layout of fadelab::medium; fadelab_air_sizes() lets a foreign declaration check itself.
 */

#ifndef FADELAB_AIR_H
#define FADELAB_AIR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct fadelab_air fadelab_air;

/* Negative: not asked for. */
typedef struct {
    int64_t lockstep;
    int64_t seed;
    int64_t wait_streams;
} fadelab_air_options;

/* How long an air that has no device stays. */
enum { FADELAB_WHILE_USED = 0, FADELAB_WHILE_CALLER_LIVES = 1, FADELAB_FOR_GOOD = 2 };

typedef struct {
    double delay_ns;
    double power_db;
    int32_t kind; /* 0 static, 1 Rayleigh, 2 Rician */
    int32_t reserved;
    double k_db;
    double doppler_hz;
    double los_doppler_hz;
    double phase_rad;
} fadelab_tap;

typedef struct {
    double gain_db;
    double delay_ns;
    double cfo_hz;
    uint64_t seed_salt;
    uint32_t flags; /* 1: do not normalise the taps */
    int32_t n_taps;
    fadelab_tap taps[24];
    char series_path[256]; /* absolute; empty: none */
} fadelab_link;

typedef struct {
    char path[256]; /* absolute; empty: none */
    double rate_sps;
    double freq_hz;
    double level_dbm; /* of its full scale, at the receiver's input */
} fadelab_interferer;

typedef struct {
    double hz; /* from the carrier; 0: no point */
    double dbc_hz;
} fadelab_mask_point;

/* Flaws of one direction of a device; vusrp/medium/impairments.hpp has their ranges. */
typedef struct {
    double iq_gain_db;
    double iq_phase_deg;
    double leakage_dbfs;
    double bits;
    double spur_hz;
    double spur_dbfs;
    fadelab_mask_point mask[6];
} fadelab_chain;

typedef struct {
    fadelab_chain rx;
    fadelab_chain tx;
    double tolerance_ppm;
    double warm_up_ppm;
    double warm_up_s;
    double walk_ppm;
    double p1db_dbm;
    double smoothness;
    double ramp_us;
    double noise_figure_lowest_db;
    double noise_figure_highest_db;
    double settling_us;
    double slope_db;
    double edge_db;
    double wideband;
    double isolation_db;
    double hiccups_hz;
    double hiccup_ms;
    double unplug_s;
} fadelab_impairments;

typedef struct {
    double freq_hz;
    double gain_db;
    double full_scale_dbm;
} fadelab_tuning;

typedef struct {
    char serial[32];
    int32_t pid;
    double clock_offset_ppm;
    fadelab_tuning tx[2]; /* of the first channels; freq_hz 0: there is none */
    fadelab_tuning rx[2];
} fadelab_device;

const char* fadelab_air_error(void); /* of this thread */
void fadelab_air_sizes(uint64_t sizes[5]); /* link, interferer, device, options, impairments */

fadelab_air* fadelab_air_create(const char* name, const fadelab_air_options* options, int keep); /* or opens it */
fadelab_air* fadelab_air_open(const char* name); /* one that exists */
void fadelab_air_close(fadelab_air* air);
int fadelab_air_remove(const char* name); /* 1: there was one */
int fadelab_air_abandoned(const char* name); /* 1: there is one that nobody uses or keeps */

int64_t fadelab_air_now_ns(const fadelab_air* air);
int fadelab_air_lockstep(const fadelab_air* air);
uint64_t fadelab_air_seed(const fadelab_air* air);
int fadelab_air_devices(fadelab_air* air, fadelab_device* devices, int room); /* returns how many */

int fadelab_air_set_link(fadelab_air* air, const char* tx, const char* rx, const fadelab_link* link);
int fadelab_air_link(fadelab_air* air, const char* tx, const char* rx, fadelab_link* link);
int fadelab_air_set_noise_dbm_hz(fadelab_air* air, const char* rx, double dbm_hz);
int fadelab_air_noise_dbm_hz(fadelab_air* air, const char* rx, double* dbm_hz);
int fadelab_air_set_interferer(fadelab_air* air, const char* rx, const fadelab_interferer* interferer);
/* NULL: the device's own hold again. */
int fadelab_air_set_impairments(fadelab_air* air, const char* serial, const fadelab_impairments* impairments);
int fadelab_air_impairments(fadelab_air* air, const char* serial, fadelab_impairments* impairments);
int fadelab_air_set_clock_offset_ppm(fadelab_air* air, const char* serial, double ppm);
int fadelab_air_clock_offset_ppm(fadelab_air* air, const char* serial, double* ppm);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

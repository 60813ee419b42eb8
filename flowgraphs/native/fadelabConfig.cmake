# find_package(fadelab): the target gnuradio::gnuradio-fadelab.
include(CMakeFindDependencyMacro)
find_dependency(Gnuradio 3.10 COMPONENTS runtime)
include(${CMAKE_CURRENT_LIST_DIR}/fadelabTargets.cmake)
